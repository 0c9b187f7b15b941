"""`POST /events`: taken in once, refused with pointers, nobody else's; and what only looks like an answer."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from attempts.reviews.models import Review
from reasoncodes.base.tenancy import every_tenant, leave_scope
from tests.cast import Cast
from tests.governed import HOLD
from tests.workflows.run_support import EVENTS, READ, entries, in_status, log, steps, violations
from tests.workflows.running import Running
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay

WRITE = "orchestrator:write"
GRANTED = {"granted": True, "missing_types": []}


@pytest.fixture
def running(cast: Cast) -> Running:
    return Running(cast)


@pytest.fixture
def module(cast: Cast) -> Any:
    return cast.api(WRITE)


def created(running: Running, **changes: Any) -> dict[str, Any]:
    return running.envelope("case.created", {"patient_id": "pat-1"}, case_id=changes.pop("case_id", uuid4()), **changes)


def post(client: Any, envelope: Any) -> Any:
    return client.post(EVENTS, envelope, format="json")


def test_an_event_is_accepted_once_and_the_same_again_changes_nothing(running: Running, module: Any) -> None:
    envelope = created(running)
    first = post(module, envelope)
    assert first.status_code == 202
    said = first.json()
    assert (said["event_id"], said["outcome"]) == (envelope["event_id"], "advanced")
    instance = running.instance(envelope["case_id"])
    assert said["instance_id"] == str(instance.id)
    again = post(module, envelope)
    assert (again.status_code, again.json()) == (200, said)
    assert log(instance) == [("case.created", "advanced")]
    assert running.fresh(instance).events == 1


def test_the_same_event_id_with_other_content_is_still_the_same_event(running: Running, module: Any) -> None:
    envelope = created(running)
    post(module, envelope)
    other = post(module, created(running, event_id=envelope["event_id"]))
    assert (other.status_code, other.json()["event_id"]) == (200, envelope["event_id"])
    with every_tenant():
        assert WorkflowInstance.objects.count() == 1


def test_an_answer_takes_the_run_further_and_is_on_the_ledger(running: Running, module: Any) -> None:
    instance = running.start()
    step = running.current(instance)
    assert step is not None
    answer = post(
        module,
        running.envelope("consent.check.completed", GRANTED, case_id=instance.case_id, correlation_id=step.id),
    )
    assert (answer.status_code, answer.json()["outcome"]) == (202, "advanced")
    assert steps(instance)[-1] == ("image_check", 1, "in_progress")
    assert entries(instance.id)[-1].actor_kind == "service"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"event_id": "seven"}, "/event_id"),
        ({"event_type": "case.creatd"}, "/event_type"),
        ({"event_type": "workflow.started"}, "/event_type"),
        ({"schema_version": "v9"}, "/schema_version"),
        ({"occurred_at": "yesterday"}, "/occurred_at"),
        ({"org_id": None}, "/org_id"),
        ({"surprise": 1}, ""),
        ({"payload": {"patient_id": "jane doe, born 1970"}}, "/payload/patient_id"),
        ({"payload": {}}, "/payload"),
    ],
)
def test_a_bad_envelope_is_refused_with_pointers_and_nothing_is_kept(
    cast: Cast, module: Any, change: dict[str, Any], pointer: str
) -> None:
    envelope = {
        "event_id": str(uuid4()),
        "event_type": "case.created",
        "schema_version": "v1",
        "occurred_at": "2026-11-16T09:30:00Z",
        "correlation_id": str(uuid4()),
        "case_id": str(uuid4()),
        "org_id": str(cast.organization.id),
        "product_id": str(uuid4()),
        "payload": {"patient_id": "pat-1"},
    } | change
    answer = post(module, envelope)
    assert answer.status_code == 422, answer.json()
    said = answer.json()
    assert said["type"].endswith("/event-invalid")
    assert [error["pointer"] for error in said["errors"] if error["pointer"].startswith(pointer)]
    assert "jane" not in answer.content.decode()
    with every_tenant():
        assert not WorkflowEvent.objects.exists()


def test_what_is_no_envelope_at_all_is_refused(cast: Cast, module: Any) -> None:
    for body in ([], [1], {}, {"payload": {}}):
        assert post(module, body).status_code == 422
    assert module.post(EVENTS, "no json", content_type="application/json").status_code == 400
    assert module.post(EVENTS, "a=1", content_type="application/x-www-form-urlencoded").status_code == 415
    deep: Any = {}
    for _ in range(9):
        deep = {"a": deep}
    assert post(module, deep).json()["type"].endswith("/body-too-deep")
    assert module.post(EVENTS, "1" * 70_000, content_type="application/json").status_code == 413
    twice = json.dumps({"event_id": 1})[:-1] + ', "event_id": 2}'
    assert module.post(EVENTS, twice, content_type="application/json").status_code == 400


def test_another_organization_s_event_is_not_found_and_on_record(running: Running, module: Any) -> None:
    other = running.cast.other
    answer = post(module, created(running, org_id=str(other.id)))
    assert (answer.status_code, violations()) == (404, ["cross_tenant"])
    assert post(running.cast.api(WRITE, organization=other), created(running)).status_code == 404
    with every_tenant():
        assert not WorkflowEvent.objects.exists()


def test_sending_and_looking_need_their_scopes(running: Running) -> None:
    cast = running.cast
    for client in (cast.api(READ), cast.api("orchestrator:intervene"), cast.session(cast.auditor)):
        assert post(client, created(running)).status_code == 403
    assert cast.api(WRITE).get(EVENTS).status_code == 403
    for client in (cast.api(READ), cast.api("orchestrator:read"), cast.session(cast.auditor)):
        assert client.get(EVENTS).status_code == 200


def test_a_case_that_no_definition_takes_is_kept_and_listed(running: Running, module: Any) -> None:
    envelope = created(running, product_id=str(uuid4()))
    said = post(module, envelope).json()
    assert (said["outcome"], said["instance_id"]) == ("unmatched", None)
    orphan = running.envelope("consent.check.completed", GRANTED, case_id=uuid4())
    assert post(module, orphan).json()["outcome"] == "unmatched"
    reader = running.cast.api(READ)
    rows = reader.get(EVENTS, {"outcome": "unmatched"}).json()["results"]
    assert [row["event_id"] for row in rows] == [orphan["event_id"], envelope["event_id"]]
    assert {row["redriven_by"] for row in rows} == {None}
    assert len(reader.get(EVENTS, {"case_id": envelope["case_id"]}).json()["results"]) == 1
    assert reader.get(EVENTS, {"redriven": "true"}).json()["results"] == []
    assert reader.get(EVENTS, {"outcome": "advanced"}).status_code == 400
    strange = running.cast.api(READ, organization=running.cast.other)
    assert strange.get(EVENTS).json()["results"] == []


def test_drift_of_client_driven_runs_is_listed(running: Running, module: Any) -> None:
    instance = running.start(orchestration_mode="client_driven")
    early = {"confidence": 0.9, "diagnoses": [], "raw_response_id": "r-1"}
    said = post(module, running.envelope("ai_review.completed", early, case_id=instance.case_id)).json()
    assert (said["outcome"], said["drift"]) == ("drift", "skipped_gate")
    reader = running.cast.api(READ)
    for query in ({"outcome": "drift"}, {"drift": "skipped_gate"}):
        assert [row["id"] for row in reader.get(EVENTS, query).json()["results"]] == [said["id"]]
    assert reader.get(EVENTS, {"drift": "wrong_order"}).json()["results"] == []
    assert reader.get(EVENTS).json()["results"] == []


def test_a_module_cannot_answer_what_was_asked_of_our_own_people(running: Running, module: Any) -> None:
    """The step waits in the review queue: an event with its correlation id must not stand in for the reviewer."""
    instance = in_status(running, "waiting_approval")
    step = running.current(instance)
    assert step is not None
    forged = running.envelope(
        "human_review.completed",
        {"decision": "confirm", "reviewer_id": "rev-1"},
        case_id=instance.case_id,
        correlation_id=step.id,
    )
    assert post(module, forged).json()["outcome"] == "drift"
    assert running.fresh(instance).state == "waiting_approval"
    with every_tenant():
        assert Review.objects.get().status == "requested"
        assert instance_replay(instance=running.fresh(instance)).differences == []


def test_a_module_cannot_complete_what_is_still_held(cast: Cast, module: Any) -> None:
    running = Running(cast, rules=HOLD)
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    step = running.current(instance)
    assert step is not None
    assert (step.step_id, step.state) == ("ai_review", "waiting_approval")
    result = {"confidence": 0.99, "diagnoses": [], "raw_response_id": "r-1"}
    early = running.envelope("ai_review.completed", result, case_id=instance.case_id, correlation_id=step.id)
    assert post(module, early).json()["drift"] == "unrequested_completion"
    assert running.fresh(instance).state == "waiting_approval"
    assert "ai_review" not in running.fresh(instance).context
    with every_tenant():
        assert instance_replay(instance=running.fresh(instance)).differences == []


@pytest.mark.django_db(transaction=True)
def test_the_same_event_many_times_at_once_is_taken_in_once() -> None:
    cast = Cast()
    running = Running(cast)
    clients = [cast.api(WRITE) for _ in range(6)]
    for _ in range(4):
        envelope = created(running)

        def send(client: Any, envelope: dict[str, Any] = envelope) -> int:
            try:
                return int(post(client, envelope).status_code)
            finally:
                leave_scope()
                connection.close()

        with ThreadPoolExecutor(len(clients)) as pool:
            answers = sorted(pool.map(send, clients))
        assert answers == [200] * 5 + [202]
        assert log(running.instance(envelope["case_id"])) == [("case.created", "advanced")]
