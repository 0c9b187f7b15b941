"""Any case: a run is asked for by the slug of a definition and a business key, with the input that its schema wants."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, transaction

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.run_support import EVENTS, READ, URL, act, log
from tests.workflows.running import Running
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay

MARK = "4711-not-to-be-repeated"
GIVEN = {"amount_cents": 4200, "currency": "EUR"}
INPUT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["amount_cents", "currency"],
    "properties": {
        "amount_cents": {"type": "integer", "minimum": 1},
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "order_ref": {"type": "string", "maxLength": 64},
    },
}


def refund(**more: Any) -> dict[str, Any]:
    """A document of format 2 with the steps that need nobody's answer but one."""
    review = {"kind": "run_ai_review", "transitions": {"on_complete": "done", "on_failure": "stop"}}
    return {
        "format": 2,
        "name": "Refund",
        "start_step": "ai_review",
        "input": INPUT,
        "steps": {
            "ai_review": review,
            "done": {"kind": "emit_final", "transitions": {"on_complete": "TERMINAL"}},
            "stop": {"kind": "halt", "params": {"reason_code": "ai_review_failed"}},
        },
    } | more


@pytest.fixture
def asking(cast: Cast) -> "Asking":
    return Asking(cast, refund())


class Asking(Running):
    """`ask` posts a request; a business key and an input that fit unless they are given."""

    def request(self, *, key: str = "order-1", given: Any = None, **changes: Any) -> dict[str, Any]:
        payload = {"definition_slug": "derm", "business_key": key, "input": GIVEN if given is None else given}
        found = self.envelope("run.requested", payload, case_id="") | changes
        return {name: value for name, value in found.items() if value != ""}

    def ask(self, **changes: Any) -> Any:
        return self.post(self.request(**changes))

    def post(self, envelope: Any) -> Any:
        return self.cast.api("orchestrator:write").post(EVENTS, envelope, format="json")

    def run(self, answer: Any) -> WorkflowInstance:
        with every_tenant():
            return WorkflowInstance.objects.get(id=answer.json()["instance_id"])

    def runs(self) -> int:
        with every_tenant():
            return WorkflowInstance.objects.count()


def test_a_run_is_started_with_its_input_and_found_by_its_business_key(asking: Asking) -> None:
    answer = asking.ask()
    assert (answer.status_code, answer.json()["outcome"]) == (202, "advanced")
    run = asking.run(answer)
    reader = asking.cast.api(READ)
    (listed,) = reader.get(f"{URL}?business_key=order-1").json()["results"]
    assert (listed["id"], listed["business_key"]) == (str(run.id), "order-1")
    assert reader.get(f"{URL}?business_key=order-2").json()["results"] == []
    shown = reader.get(f"{URL}/{run.id}").json()
    assert (shown["input"], shown["output"], shown["definition_slug"]) == (GIVEN, None, "derm")
    assert "secret" not in shown
    asking.answer(run)
    assert asking.fresh(run).state == "completed"
    with every_tenant():
        assert instance_replay(instance=asking.fresh(run)).differences == []


def test_the_same_event_and_the_same_request_start_nothing_more_and_name_the_run(asking: Asking) -> None:
    envelope = asking.request()
    first = asking.post(envelope)
    again, other_id = asking.post(envelope), asking.ask()
    assert [answer.status_code for answer in (first, again, other_id)] == [202, 200, 200]
    assert {answer.json()["instance_id"] for answer in (first, again, other_id)} == {first.json()["instance_id"]}
    assert other_id.json()["outcome"] == "ignored"
    assert asking.runs() == 1
    assert log(asking.run(first))[0] == ("run.requested", "advanced")
    with every_tenant():
        assert instance_replay(instance=asking.run(first)).differences == []


def test_another_input_under_a_key_that_is_in_use_is_refused_and_names_the_run(asking: Asking) -> None:
    first = asking.ask()
    answer = asking.ask(given=GIVEN | {"amount_cents": 4201})
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (409, "run-exists")
    assert answer.json()["instance_id"] == first.json()["instance_id"]
    assert "4201" not in answer.content.decode()
    assert asking.runs() == 1


def test_after_its_end_the_key_starts_another_run_of_the_same_case(asking: Asking) -> None:
    first = asking.run(asking.ask())
    act(asking, first, "cancel")
    second = asking.run(asking.ask(given=GIVEN | {"amount_cents": 1}))
    assert (second.id != first.id, second.case_id == first.case_id) == (True, True)
    asking.answer(second)
    assert (asking.fresh(second).state, asking.fresh(first).state) == ("completed", "cancelled")


def test_a_case_that_is_named_is_kept_and_stands_beside_the_run_of_that_case(cast: Cast) -> None:
    asking = Asking(cast, refund(input={**INPUT, "required": []}))
    case = asking.start()
    answer = asking.ask(case_id=str(case.case_id))
    assert asking.run(answer).case_id == case.case_id
    assert asking.run(answer).id != case.id
    assert asking.send(
        asking.envelope("case.created", {"patient_id": "pat-1"}, case_id=case.case_id)
    ).event.outcome == ("ignored")


@pytest.mark.parametrize(
    ("given", "pointer", "rule"),
    [
        ({"currency": "EUR"}, "/payload/input/amount_cents", "required"),
        ({"amount_cents": MARK, "currency": "EUR"}, "/payload/input/amount_cents", "type"),
        (GIVEN | {"currency": MARK}, "/payload/input/currency", "format"),
        (GIVEN | {"order_ref": "ops@example.org"}, "/payload/input/order_ref", "email"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_by_pointer_and_nothing_of_it_is_kept(
    asking: Asking, given: Any, pointer: str, rule: str
) -> None:
    answer = asking.ask(given=given)
    assert answer.status_code == 422
    assert [(error["pointer"], error["rule"]) for error in answer.json()["errors"]] == [(pointer, rule)]
    said = answer.content.decode()
    assert MARK not in said
    assert "example.org" not in said
    with every_tenant():
        assert (asking.runs(), WorkflowEvent.objects.count()) == (0, 0)


def test_a_field_that_the_schema_does_not_know_is_refused_without_its_value(asking: Asking) -> None:
    answer = asking.ask(given=GIVEN | {"colour": MARK})
    assert (answer.status_code, answer.json()["errors"][0]["rule"]) == (422, "unknown_field")
    assert MARK not in answer.content.decode()


def test_a_definition_that_is_not_active_cannot_be_asked_for(asking: Asking) -> None:
    payload = {"definition_slug": "unknown", "business_key": "order-1", "input": GIVEN}
    for envelope in (asking.request(payload=payload), asking.request(product_id=str(uuid4()))):
        answer = asking.post(envelope)
        assert answer.status_code == 422
        assert [(one["pointer"], one["rule"]) for one in answer.json()["errors"]] == [
            ("/payload/definition_slug", "no_active_definition")
        ]
    assert asking.runs() == 0


def test_a_definition_with_required_input_stands_beside_the_one_that_takes_cases(asking: Asking) -> None:
    cases = asking.publish("ai_only", slug="cases")
    assert asking.start().definition_id == cases.id
    assert asking.run(asking.ask()).definition_id == asking.definition.id
    newer = asking.publish(refund(description="The second one"))
    assert asking.run(asking.ask(key="order-2")).definition_id == newer.id
    assert asking.start().definition_id == cases.id


def test_only_documents_that_need_no_input_take_cases(asking: Asking) -> None:
    asking.send(asking.envelope("case.created", {"patient_id": "pat-1"}, case_id=uuid4()))
    assert asking.runs() == 0
    asking.publish(refund(input={**INPUT, "required": []}))
    assert asking.start().input == {}


def test_superseding_goes_on_with_the_same_key_and_input(asking: Asking) -> None:
    first = asking.run(asking.ask())
    newer = asking.publish(refund(description="The second one"))
    answer = act(asking, first, "supersede")
    assert answer.status_code == 200
    second = asking.fresh(WorkflowInstance(id=UUID(answer.json()["instance"]["superseded_by"])))
    assert (second.definition_id, second.business_key, second.input) == (newer.id, "order-1", GIVEN)
    with every_tenant():
        assert instance_replay(instance=second).differences == []


def test_the_database_holds_one_live_run_per_key(asking: Asking) -> None:
    run = asking.run(asking.ask())
    run.pk, run.case_id = uuid4(), uuid4()
    with every_tenant(), pytest.raises(IntegrityError, match="instance_one_per_key"), transaction.atomic():
        run.save(force_insert=True)


def test_unpublishing_a_bad_version_moves_new_runs_to_the_one_before_at_once(asking: Asking) -> None:
    first, bad = asking.definition, asking.publish(refund(description="A bad one"))
    under_bad = asking.run(asking.ask())
    url = f"/api/v1/workflow-definitions/{bad.id}/unpublish"
    operator = asking.cast.api("orchestrator:publish")
    answer = operator.post(url, {"reason": "It pays twice"}, format="json")
    assert (answer.status_code, answer.json()["id"], answer.json()["status"]) == (200, str(first.id), "active")
    assert asking.run(asking.ask(key="order-2")).definition_id == first.id
    asking.answer(under_bad)
    assert (asking.fresh(under_bad).definition_id, asking.fresh(under_bad).state) == (bad.id, "completed")
    assert operator.post(url, {}, format="json").status_code == 409
    again = operator.post(f"/api/v1/workflow-definitions/{first.id}/unpublish", {}, format="json")
    assert again.status_code == 409
