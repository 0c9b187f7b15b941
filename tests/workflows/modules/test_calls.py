"""Calls of modules: pinned at publication, over streams and HTTP, governed, and never twice."""

import base64
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.work import Places
from attempts.quarantine.models import QuarantineCase
from governance.enforcement.models import snapshot_load
from governance.ledger.rules.entry import canonical_sha256
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.workflows.modules.calling import RECEIPT, SEND, Calling
from tests.workflows.modules.support import REFUND, closed, decide
from workflows.definitions.errors import DefinitionInvalid
from workflows.modules.configured import module_keys
from workflows.modules.models import ModuleCall
from workflows.modules.rules.answers import CallResult
from workflows.modules.selectors import module_salts
from workflows.modules.services.calls import call_begin, call_settle, calls_expire, module_call_execute
from workflows.modules.services.work import call_heads

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def target(settings: Any) -> Iterator[CountingTarget]:
    target = CountingTarget()
    settings.HOLDPOINT_WEBHOOK_ALLOW_PRIVATE = [target.host]
    yield target
    target.stop()


@pytest.fixture
def places() -> Places:
    return Places(4, heads=call_heads)


def of_run(model: Any, running: Calling) -> list[Any]:
    with every_tenant():
        return list(model.objects.order_by("id"))


def test_a_call_is_signed_keyed_and_completes_the_step_with_its_answer(
    cast: Cast, target: CountingTarget, places: Places
) -> None:
    running = Calling(cast, target)
    instance = running.ended(places)
    assert (instance.state, instance.context["pay"]) == ("completed", {"receipt_ref": "rcpt-1"})
    (got,) = target.requests
    (attempt,) = running.attempts()
    with every_tenant():
        intent, receipt = DispatchIntent.objects.get(attempt=attempt), Receipt.objects.get(attempt=attempt)
    assert json.loads(got["raw"]) == SEND
    assert got["key"] == str(attempt.id)
    assert (attempt.operation, attempt.target_ref) == ("payments.refund", "payments")
    assert (attempt.payload_sha256, intent.once) == (canonical_sha256(SEND), True)
    assert (receipt.outcome, attempt.state) == ("success", "completed")
    with every_tenant():
        salts = module_salts(module_id=running.registered.module.id, at=timezone.now())
    (key,) = module_keys(running.registered.module.id, salts)
    signed = b".".join([got["headers"][name].encode() for name in ("webhook-id", "webhook-timestamp")] + [got["raw"]])
    good = base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()
    assert got["headers"]["webhook-signature"] == f"v1,{good}"
    assert running.agrees(instance)


def test_the_draft_stays_as_it_was_written_and_the_stored_version_has_the_pins(cast: Cast) -> None:
    running = Calling(cast, effect="idempotent")
    assert "pinned" not in running.definition.definition["steps"]["pay"]["params"]
    stored = snapshot_load(running.definition.snapshot_sha256)["definition"]["steps"]["pay"]["params"]["pinned"]
    assert stored == {"version": 1, "transport": "stream", "effect": "idempotent", "method": "POST", "path": "/refunds"}
    decide(cast, "module.change", "payments", {"operations": {"refund": REFUND}})
    instance = running.start()
    assert running.agrees(instance)
    assert of_run(DispatchIntent, running)[0].once is False  # as it was published


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("an unknown module", {"params": {"module": "payment"}}, "module_known", "/params/module"),
    ("an unknown operation", {"params": {"operation": "pay"}}, "operation_known", "/params/operation"),
    ("a field it does not know", {"params": {"send": SEND | {"tip": 1}}}, "send_fits", "/params/send"),
    (
        "an answer it does not give",
        {"params": {"returns": closed(receipt_ref={"type": "integer"})}},
        "returns_fit",
        "/params/returns/properties/receipt_ref/type",
    ),
    ("retries of what happens once", {"max_retries": 1}, "effect_once_no_retry", "/max_retries"),
]


@pytest.mark.parametrize(("step", "rule", "pointer"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_a_call_that_does_not_fit_is_not_published(cast: Cast, step: dict[str, Any], rule: str, pointer: str) -> None:
    with pytest.raises(DefinitionInvalid) as refused:
        Calling(cast, **step)
    found = [(one.rule, one.pointer.partition("/steps/pay")[2]) for one in refused.value.errors]
    assert (rule, pointer) in found


def test_a_call_over_the_streams_is_answered_by_an_event(cast: Cast) -> None:
    running = Calling(cast)
    instance = running.start()
    (request,) = running.requested(instance)
    assert request.event_type == "module.payments.refund.requested"
    assert request.envelope["payload"] == {"module": "payments", "operation": "refund", "send": SEND}
    assert request.call is None
    running.report(instance, "module.payments.refund.completed", {"result": {"receipt_ref": "rcpt-2"}})
    done = running.fresh(instance)
    assert (done.state, done.context["pay"]) == ("completed", {"receipt_ref": "rcpt-2"})
    assert running.agrees(instance)


def test_a_code_that_nobody_registered_is_kept(cast: Cast) -> None:
    running = Calling(cast)
    instance = running.start()
    step = running.current(instance)
    running.report(instance, "module.payments.refund.failed", {"reason_code": "card_expired", "retryable": False})
    assert running.fresh(instance).state == "halted"
    assert step is not None
    with every_tenant():
        step.refresh_from_db()
    assert step.error == {"reason_code": "card_expired"}


@pytest.mark.parametrize("body", [b'{"receipt_ref": 7}', b'{"other": "x"}', b"[]", b"nonsense"])
def test_an_answer_that_does_not_fit_halts_as_drift(
    cast: Cast, target: CountingTarget, places: Places, body: bytes
) -> None:
    running = Calling(cast, target)
    target.body = body
    instance = running.ended(places)
    assert (instance.state, instance.halt_reason) == ("halted", "output_contract_drift")
    assert len(of_run(QuarantineCase, running)) == 1
    assert running.agrees(instance)


def test_a_problem_decides_about_the_retry_and_the_key_stays_the_same(
    cast: Cast, target: CountingTarget, places: Places
) -> None:
    running = Calling(cast, target, effect="idempotent", max_retries=1)
    target.statuses, target.body = [503], b'{"reason_code": "busy", "retryable": true}'
    instance = running.ended(places, at=timezone.now() - timedelta(hours=1))  # by now the next try is due
    step = running.current(instance)
    assert step is not None
    assert (step.attempt, step.state) == (2, "pending")
    target.body = RECEIPT
    assert running.retry() == 1
    running.relay()
    running.work(places)
    running.follow()
    assert running.fresh(instance).state == "completed"
    first, second = target.requests
    assert first["key"] == second["key"]
    assert first["headers"]["webhook-id"] != second["headers"]["webhook-id"]
    assert running.agrees(instance)


def test_a_final_problem_takes_the_way_of_failure(cast: Cast, target: CountingTarget, places: Places) -> None:
    running = Calling(cast, target)
    target.statuses, target.body = [409], b'{"reason_code": "order_closed", "retryable": false}'
    instance = running.ended(places)
    assert (instance.state, instance.halt_step_id) == ("halted", "unpaid")
    assert running.agrees(instance)


def test_accepted_means_that_an_event_will_answer(cast: Cast, target: CountingTarget, places: Places) -> None:
    running = Calling(cast, target)
    target.statuses = [202]
    instance = running.ended(places)
    assert instance.state == "running"
    running.report(instance, "module.payments.refund.completed", {"result": {"receipt_ref": "rcpt-3"}})
    assert running.fresh(instance).context["pay"] == {"receipt_ref": "rcpt-3"}


def test_a_server_that_breaks_in_the_middle_of_what_happens_once_is_not_asked_again(
    cast: Cast, target: CountingTarget, places: Places
) -> None:
    running = Calling(cast, target)
    target.statuses = [500]
    target.body = b"<html>"
    instance = running.ended(places)
    assert (instance.state, instance.halt_reason) == ("halted", "outcome_unknown")
    (case,) = of_run(QuarantineCase, running)
    assert case.category == "outcome_unknown"
    running.relay()
    running.work(places)
    assert len(target.requests) == 1
    assert running.agrees(instance)


def test_a_sender_that_died_leaves_an_unknown_outcome_and_no_second_call(
    cast: Cast, target: CountingTarget, places: Places
) -> None:
    running = Calling(cast, target)
    instance = running.start()
    running.relay()
    (call,) = running.calls()
    with every_tenant():
        begun = call_begin(call_id=call.id, at=timezone.now())
        assert begun is not None  # and here the process ends
        assert call_begin(call_id=call.id, at=timezone.now()) is None
        later = timezone.now() + timedelta(minutes=2)
        assert (calls_expire(at=timezone.now()), calls_expire(at=later), calls_expire(at=later)) == (0, 1, 0)
    assert running.work(places) == 0
    running.follow()
    assert running.fresh(instance).halt_reason == "outcome_unknown"
    assert len(of_run(QuarantineCase, running)) == 1
    with every_tenant():
        late = call_settle(
            call_id=call.id, tries=1, result=CallResult("completed", {"result": {}}), outcome="answered", at=later
        )
    assert late is False
    assert target.requests == []


def test_a_read_whose_sender_died_is_sent_again(cast: Cast, target: CountingTarget, places: Places) -> None:
    running = Calling(cast, target, effect="none")
    instance = running.start()
    running.relay()
    (call,) = running.calls()
    with every_tenant():
        assert call_begin(call_id=call.id, at=timezone.now()) is not None
        calls_expire(at=timezone.now() + timedelta(minutes=2))
    assert running.work(places) == 1
    running.follow()
    assert running.fresh(instance).state == "completed"
    assert running.attempts() == []  # a read opens no attempt


def test_a_disabled_module_gets_nothing(cast: Cast, target: CountingTarget, places: Places) -> None:
    running = Calling(cast, target)
    instance = running.start()
    running.relay()
    reason = {"reason_code": "rehearsal"}
    url = f"/api/v1/modules/{running.registered.module.id}/disable"
    assert cast.api("governance:write").post(url, reason, format="json").status_code == 200
    running.work(places)
    running.follow()
    assert target.requests == []
    assert running.fresh(instance).halt_step_id == "unpaid"


def test_what_goes_out_over_http_is_on_no_stream_and_made_once(cast: Cast, target: CountingTarget) -> None:
    running = Calling(cast, target)
    running.start()
    running.relay()
    running.relay()
    assert len(running.calls()) == running.due() == 1
    with every_tenant():
        (call,) = ModuleCall.objects.all()
    assert call.terms["method"] == "POST"


def test_a_shutdown_between_the_intent_and_the_call_stops_it(
    cast: Cast, target: CountingTarget, places: Places
) -> None:
    running = Calling(cast, target)
    instance = running.start()
    running.relay()
    contract = running.definition.contract
    assert contract is not None
    said = {"scope": "contract", "target": contract.slug, "reason_code": "incident_response", "note": "rehearsed"}
    engaged = cast.api("governance:write").post("/api/v1/shutdowns", said, format="json")
    assert engaged.status_code == 201, engaged.json()
    running.work(places)
    running.follow()
    assert target.requests == []
    assert running.fresh(instance).state == "halted"


def test_two_workers_send_a_call_once(cast: Cast, target: CountingTarget) -> None:
    running = Calling(cast, target)
    running.start()
    running.relay()
    (call,) = running.calls()
    with every_tenant():
        done = [module_call_execute(attempt_id=call.id, now=timezone.now) for _ in range(2)]
    assert [one.outcome is not None for one in done] == [True, False]
    assert len(target.requests) == 1
