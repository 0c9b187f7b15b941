"""Executors over HTTP: lease, heartbeat, complete, fail; stale tokens; other people's attempts."""

from typing import Any
from uuid import UUID

import pytest

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.lease_expire import leases_expire
from attempts.lifecycle.models import Slot
from attempts.quarantine.models import QuarantineCase
from governance.ledger.models import LedgerEntry
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import (
    actions_of,
    asked,
    attempt,
    contract,
    lease_runs_out,
    retry_becomes_due,
)
from tests.cast import Cast


def post(client: Any, attempt_id: Any, verb: str, **fields: Any) -> Any:
    return client.post(f"/api/v1/attempts/{attempt_id}/{verb}", fields, format="json")


def leased(client: Any, attempt_id: UUID) -> str:
    answer = post(client, attempt_id, "lease")
    assert answer.status_code == 200, answer.content
    return str(answer.json()["lease_token"])


def fail(client: Any, attempt_id: UUID, token: str, **changes: Any) -> Any:
    fields = {"category": "adapter_failure", "retryable": True, "reason_code": "adapter_failed"} | changes
    return post(client, attempt_id, "fail", lease_token=token, **fields)


@pytest.fixture
def ready(cast: Cast, caller: Any) -> UUID:
    contract(cast, adapter="external", effect="idempotent")
    return asked(caller, connector="external", runtime_mode="client_driven")


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.values_list("kind", flat=True))


def test_lease_then_complete_and_everything_is_on_record(ready: UUID, executor: Any) -> None:
    answer = post(executor, ready, "lease")
    lease = answer.json()
    assert set(lease) == {"lease_token", "lease_expires_at", "effect_key", "attempt"}
    assert lease["attempt"]["id"] == str(ready)
    done = post(
        executor,
        ready,
        "complete",
        lease_token=lease["lease_token"],
        response_metadata={"status": 200, "reference": "case-0001"},
        cost={"provider": "acme", "model": "m-1", "units": 812, "amount": "0.004060", "currency": "USD"},
        reversible=True,
        reversal_hint="case.reopen",
    )
    assert (done.status_code, done.json()["state"]) == (200, "completed"), done.content
    assert actions_of(ready)[3:] == [
        "attempt.decided",
        "attempt.leased",
        "attempt.dispatched",
        "attempt.completed",
    ]
    with every_tenant():
        receipt = Receipt.objects.get()
        assert receipt.cost == {
            "provider": "acme",
            "model": "m-1",
            "units": 812,
            "amount": "0.004060",
            "currency": "USD",
        }
        assert (receipt.reversible, receipt.reversal_hint) == (True, "case.reopen")
        assert DispatchIntent.objects.get().executor_ref.startswith("service:")
        assert not Slot.objects.exists()


def test_a_lease_by_id_needs_no_body_and_takes_no_fields(ready: UUID, executor: Any) -> None:
    assert post(executor, ready, "lease", limit=1).status_code == 400
    assert executor.post(f"/api/v1/attempts/{ready}/lease").status_code == 200


def test_the_same_report_again_gets_the_same_answer_and_writes_nothing(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    first, again = (post(executor, ready, "complete", lease_token=token) for _ in range(2))
    assert (again.status_code, again.json()) == (200, first.json())
    with every_tenant():
        assert Receipt.objects.count() == 1
    assert violations() == []


def test_nobody_gets_a_second_lease_while_the_first_lives(ready: UUID, cast: Cast, executor: Any) -> None:
    leased(executor, ready)
    answer = post(cast.api("attempts:execute"), ready, "lease")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/not-leasable")


def test_a_batch_takes_the_oldest_first_and_only_this_organizations(cast: Cast, caller: Any, executor: Any) -> None:
    contract(cast, adapter="external")
    found = [asked(caller, number, connector="external", runtime_mode="client_driven") for number in range(1, 5)]
    stranger = cast.api("attempts:execute", organization=cast.other)
    assert stranger.post("/api/v1/attempts/lease", {"limit": 50}, format="json").json() == {"results": []}
    answer = executor.post("/api/v1/attempts/lease", {"connector": "external", "limit": 3}, format="json")
    assert {row["attempt"]["id"] for row in answer.json()["results"]} == {str(one) for one in found[:3]}
    assert executor.post("/api/v1/attempts/lease", {"connector": "http"}, format="json").json() == {"results": []}
    rest = executor.post("/api/v1/attempts/lease", {"limit": 50}, format="json").json()["results"]
    assert [row["attempt"]["id"] for row in rest] == [str(found[3])]
    assert executor.post("/api/v1/attempts/lease", {"limit": 51}, format="json").status_code == 400


def test_what_holdpoint_executes_itself_and_shadows_are_not_leased(cast: Cast, caller: Any, executor: Any) -> None:
    contract(cast)
    ours, shadow = asked(caller, 1), asked(caller, 2, runtime_mode="shadow")
    theirs = asked(caller, 3, runtime_mode="client_driven")
    assert post(executor, ours, "lease").status_code == 409
    assert post(executor, shadow, "lease").status_code == 409
    assert post(executor, theirs, "lease").status_code == 200


def test_a_heartbeat_extends_a_living_lease_and_only_that(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    before = attempt(ready).lease_expires_at
    answer = post(executor, ready, "heartbeat", lease_token=token)
    after = attempt(ready).lease_expires_at
    assert answer.status_code == 200
    assert before is not None
    assert after is not None
    assert after > before
    lease_runs_out(ready)
    late = post(executor, ready, "heartbeat", lease_token=token)
    assert (late.status_code, late.json()["type"].rsplit("/", 1)[1]) == (409, "lease-lost")
    assert violations() == ["stale_lease"]


def test_a_late_completion_is_refused_and_kept_and_a_person_must_find_out(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    lease_runs_out(ready)
    for _ in range(2):
        late = post(executor, ready, "complete", lease_token=token, response_metadata={"status": 200})
        assert (late.status_code, late.json()["reason_code"]) == (409, "lease_lost")
    with every_tenant():
        receipt = Receipt.objects.get()
        assert (receipt.late, receipt.outcome, receipt.response_metadata) == (True, "success", {})
        assert leases_expire() == 1
        assert QuarantineCase.objects.get().category == "outcome_unknown"
    row = attempt(ready)
    assert (row.state, row.reason_code) == ("failed-quarantined", "outcome_unknown")
    assert [action for action in actions_of(ready)[6:] if action != "violation.recorded"] == [
        "attempt.late_evidence",
        "attempt.quarantined",
    ]
    assert violations() == ["stale_lease"] * 2


@pytest.mark.parametrize("verb", ["heartbeat", "complete"])
def test_a_made_up_token_is_refused_and_leaves_no_evidence(ready: UUID, executor: Any, verb: str) -> None:
    token = leased(executor, ready)
    for wrong in (f"{ready}:1:AAAA", "1", token[:-1] + ("A" if token[-1] != "A" else "B"), token.replace(":1:", ":2:")):
        assert post(executor, ready, verb, lease_token=wrong).status_code == 409
    with every_tenant():
        assert not Receipt.objects.exists()
    assert attempt(ready).state == "approved-for-execution"
    assert post(executor, ready, verb, lease_token=token).status_code == 200


def test_a_token_of_another_executor_is_no_lease(ready: UUID, cast: Cast, executor: Any) -> None:
    token = leased(executor, ready)
    assert post(cast.api("attempts:execute"), ready, "complete", lease_token=token).status_code == 409


def test_a_token_from_before_a_retry_is_stale(ready: UUID, executor: Any) -> None:
    old = leased(executor, ready)
    assert fail(executor, ready, old).status_code == 200
    retry_becomes_due(ready)
    new = leased(executor, ready)
    assert post(executor, ready, "heartbeat", lease_token=old).status_code == 409
    assert attempt(ready).state == "approved-for-execution"
    assert post(executor, ready, "complete", lease_token=new).json()["state"] == "completed"


@pytest.mark.parametrize("leased_again", [False, True])
def test_a_failure_and_then_a_success_under_the_same_token_go_to_a_person(
    ready: UUID, executor: Any, leased_again: bool
) -> None:
    token = leased(executor, ready)
    assert fail(executor, ready, token).json()["next_eligible_at"] is not None
    newer = ""
    if leased_again:
        retry_becomes_due(ready)
        newer = leased(executor, ready)
    late = post(executor, ready, "complete", lease_token=token)
    assert (late.status_code, late.json()["reason_code"]) == (409, "lease_lost")
    row = attempt(ready)
    assert (row.state, row.reason_code, row.next_eligible_at) == ("failed-quarantined", "outcome_unknown", None)
    with every_tenant():
        assert list(Receipt.objects.order_by("id").values_list("outcome", "late")) == [
            ("failure", False),
            ("success", True),
        ]
        case = QuarantineCase.objects.get()
        assert (case.category, case.resolution) == ("outcome_unknown", "")
        moves = [move for entry in LedgerEntry.objects.filter(subject_id=ready) for move in entry.moves]
        told = next(move.facts or {} for move in moves if move.action == "attempt.quarantined")
        assert (told["trigger"], len(told["reports"])) == ("contradictory_evidence", 2)
        assert not Slot.objects.exists()
    assert post(executor, ready, "lease").status_code == 409
    if leased_again:  # the executor of the newer lease is refused too, and what it says is kept
        assert post(executor, ready, "complete", lease_token=newer).status_code == 409
        with every_tenant():
            assert Receipt.objects.filter(late=True).count() == 2
    assert set(violations()) == {"stale_lease"}


def test_a_late_report_after_the_end_is_kept_and_changes_nothing(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    assert post(executor, ready, "complete", lease_token=token).status_code == 200
    assert fail(executor, ready, token).status_code == 409
    assert attempt(ready).state == "completed"
    with every_tenant():
        assert Receipt.objects.filter(late=True, outcome="failure").count() == 1


def test_a_retryable_failure_is_due_again_and_the_same_report_twice_counts_once(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    first, again = fail(executor, ready, token), fail(executor, ready, token)
    assert first.json()["state"] == "approved-for-execution"
    assert first.json()["next_eligible_at"] is not None
    assert again.json() == first.json()
    assert post(executor, ready, "lease").status_code == 409
    assert actions_of(ready)[-1] == "attempt.retried"


@pytest.mark.parametrize(
    ("changes", "category", "reason"),
    [
        ({"retryable": False}, "adapter_failure", "adapter_failed"),
        ({"category": "timeout"}, "outcome_unknown", "outcome_unknown"),
        ({"category": "outcome_unknown"}, "outcome_unknown", "outcome_unknown"),
        ({"category": "policy_changed"}, "policy_changed", "adapter_failed"),
    ],
)
def test_what_may_not_be_tried_again_is_set_apart(
    ready: UUID, executor: Any, changes: dict[str, Any], category: str, reason: str
) -> None:
    answer = fail(executor, ready, leased(executor, ready), **changes)
    assert (answer.json()["state"], answer.json()["reason_code"]) == ("failed-quarantined", reason)
    with every_tenant():
        case = QuarantineCase.objects.get()
        assert (case.category, case.escalation_owner) == (category, "trust-operations")
        assert Receipt.objects.exists() == (reason == "adapter_failed")
        assert not Slot.objects.exists()


def test_saying_again_that_nobody_knows_is_no_violation(ready: UUID, executor: Any) -> None:
    token = leased(executor, ready)
    assert [fail(executor, ready, token, category="timeout").status_code for _ in range(2)] == [200, 200]
    assert violations() == []


@pytest.mark.parametrize(
    "changes", [{"category": "nonsense"}, {"reason_code": "no_such_code"}, {"extra": 1}, {"retryable": "perhaps"}]
)
def test_a_malformed_failure_is_400_and_the_lease_stays(ready: UUID, executor: Any, changes: dict[str, Any]) -> None:
    token = leased(executor, ready)
    assert fail(executor, ready, token, **changes).status_code == 400
    assert post(executor, ready, "complete", lease_token=token).status_code == 200


@pytest.mark.parametrize(
    "report",
    [
        {"response_metadata": {"note": "jane.canary@example.com"}},
        {"response_metadata": {"text": "The patient called this morning and was very upset about the bill."}},
        {"response_metadata": {"a": {"b": {"c": {"d": 1}}}}},
        {"response_metadata": {"blob": "x" * 5000}},
        {"reversal_hint": "call jane.canary@example.com"},
    ],
)
def test_a_report_outside_the_boundary_is_422_and_nothing_of_it_is_stored(
    ready: UUID, executor: Any, report: dict[str, Any]
) -> None:
    token = leased(executor, ready)
    answer = post(executor, ready, "complete", lease_token=token, **report)
    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"][0]["pointer"].startswith("/" + next(iter(report)))
    assert "canary" not in answer.content.decode()
    with every_tenant():
        assert not Receipt.objects.exists()
    assert post(executor, ready, "complete", lease_token=token).status_code == 200


@pytest.mark.parametrize("verb", ["lease", "heartbeat", "complete", "fail"])
def test_another_organizations_attempt_does_not_exist(ready: UUID, cast: Cast, verb: str) -> None:
    stranger = cast.api("attempts:execute", organization=cast.other)
    fields = {} if verb == "lease" else {"lease_token": "1"}
    fields |= {"category": "timeout"} if verb == "fail" else {}
    assert post(stranger, ready, verb, **fields).status_code == 404
    assert violations() == ["cross_tenant"]


@pytest.mark.parametrize("verb", ["lease", "heartbeat", "complete", "fail"])
def test_without_the_scope_it_is_403_and_people_cannot_execute(ready: UUID, cast: Cast, caller: Any, verb: str) -> None:
    assert post(caller, ready, verb).status_code == 403
    assert post(cast.session(cast.operator), ready, verb).status_code == 403


@pytest.mark.parametrize("strikes", [2, 8])
def test_how_many_late_reports_suspend_an_executor_says_the_contract(
    cast: Cast, caller: Any, executor: Any, strikes: int
) -> None:
    rule = {"strikes": strikes, "window_seconds": 600, "action": "suspend_service_account"}
    changes = {"throttles_and_misuse": {"misuse": rule}}
    contract(cast, adapter="external", effect="idempotent", changes=changes)
    ready = asked(caller, connector="external", runtime_mode="client_driven")
    token = leased(executor, ready)
    lease_runs_out(ready)
    for _ in range(strikes):
        assert post(executor, ready, "complete", lease_token=token).status_code == 409
    assert post(executor, ready, "complete", lease_token=token).status_code == 403
