"""The worker's way, with a real target: what is sent, what is recorded, what is tried again and what never is."""

import base64
import hmac
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.execution.adapters.base import signing_secret
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.lease import attempt_lease, for_worker
from attempts.execution.services.lease_expire import leases_expire
from attempts.lifecycle.models import Slot
from attempts.quarantine.models import QuarantineCase
from governance.contracts.models import Contract
from governance.contracts.services.contracts import contract_retire, contract_suspend
from governance.enforcement.models import EnforcementDecision
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import (
    actions_of,
    asked,
    attempt,
    change,
    contract,
    lease_runs_out,
    retry_becomes_due,
    retry_of,
)
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast


def dispatch(attempt_id: Any) -> str | None:
    return attempt_dispatch(attempt_id=attempt_id, now=timezone.now)


def case_of(attempt_id: Any) -> QuarantineCase:
    with every_tenant():
        return QuarantineCase.objects.get(attempt_id=attempt_id)


def test_an_allowed_attempt_is_sent_once_and_everything_is_on_record(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    found = asked(caller)
    assert dispatch(found) == "completed"
    (request,) = target.requests
    assert request["key"] == f"hp-{found}"
    assert request["body"]["payload_sha256"] == "ab" * 32
    assert actions_of(found)[3:] == [
        "attempt.decided",
        "attempt.leased",
        "attempt.dispatched",
        "attempt.completed",
    ]
    with every_tenant():
        intent, receipt = DispatchIntent.objects.get(), Receipt.objects.get()
        assert (intent.number, intent.fence, intent.once, intent.adapter) == (1, 1, True, "http")
        assert (receipt.outcome, receipt.intent_id, receipt.response_metadata["status"]) == ("success", intent.id, 200)
        assert not Slot.objects.exists()
    row = attempt(found)
    assert (row.lease_expires_at, row.next_eligible_at, row.tries) == (None, None, 1)
    assert dispatch(found) is None
    assert len(target.requests) == 1


def test_the_call_is_signed_for_the_receiver_of_this_organization(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    dispatch(asked(caller))
    (request,) = target.requests
    headers = {name.lower(): value for name, value in request["headers"].items()}
    secret = base64.b64decode(signing_secret(cast.organization.id).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request["raw"]
    expected = base64.b64encode(hmac.new(secret, signed, sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert signing_secret(cast.organization.id) != signing_secret(cast.other.id)


def test_a_busy_receiver_is_tried_again_with_the_same_key_until_it_takes_it(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast, effect="idempotent")
    target.statuses = [503, 429]
    found = asked(caller)
    assert dispatch(found) == "approved-for-execution"
    row = attempt(found)
    assert row.next_eligible_at is not None
    assert 4 < (row.next_eligible_at - timezone.now()).total_seconds() < 7
    assert dispatch(found) is None
    for _ in range(2):
        retry_becomes_due(found)
        dispatch(found)
    assert attempt(found).state == "completed"
    assert [request["key"] for request in target.requests] == [f"hp-{found}"] * 3
    assert target.effects == {f"hp-{found}": 1}
    assert actions_of(found).count("attempt.retried") == 2
    with every_tenant():
        assert list(Receipt.objects.values_list("outcome", flat=True)) == ["failure", "failure", "success"]
        assert list(DispatchIntent.objects.values_list("number", "fence")) == [(1, 1), (2, 2), (3, 3)]


def test_tries_end_and_the_attempt_is_set_apart(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast, effect="idempotent")
    target.statuses = [500] * 9
    found = asked(caller)
    for _ in range(6):
        dispatch(found)
        if attempt(found).next_eligible_at:
            retry_becomes_due(found)
    assert len(target.requests) == 4
    assert (attempt(found).state, case_of(found).category) == ("failed-quarantined", "adapter_failure")
    with every_tenant():
        assert not Slot.objects.exists()


@pytest.mark.parametrize("status", [500, 429, 400, 404, 302])
def test_effect_once_is_never_tried_again(cast: Cast, caller: Any, target: CountingTarget, status: int) -> None:
    contract(cast)
    target.statuses = [status]
    found = asked(caller)
    assert dispatch(found) == "failed-quarantined"
    case = case_of(found)
    assert (case.category, case.reason_code, case.escalation_owner) == (
        "adapter_failure",
        "adapter_failed",
        "trust-operations",
    )
    assert len(target.requests) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 301])
def test_a_refusal_by_the_receiver_is_final_even_where_retries_are_safe(
    cast: Cast, caller: Any, target: CountingTarget, status: int
) -> None:
    contract(cast, effect="idempotent")
    target.statuses, target.headers = [status], {"Location": target.url}
    assert dispatch(asked(caller)) == "failed-quarantined"
    assert len(target.requests) == 1


def test_an_answer_that_never_comes_is_an_unknown_outcome_whatever_the_effect(
    cast: Cast, caller: Any, target: CountingTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attempts.execution.services.dispatch.CALL_SECONDS", 3)
    contract(cast, effect="idempotent")
    target.hold = True
    found = asked(caller)
    assert dispatch(found) == "failed-quarantined"
    case = case_of(found)
    assert (case.category, case.reason_code) == ("outcome_unknown", "outcome_unknown")
    assert attempt(found).next_eligible_at is None
    with every_tenant():
        assert not Receipt.objects.exists()


def test_no_connection_means_that_nothing_was_sent_and_may_be_tried_again(
    cast: Cast, caller: Any, target: CountingTarget, settings: Any
) -> None:
    contract(cast, effect="idempotent")
    settings.HOLDPOINT_HTTP_TARGETS = {"clinic/close-case": "http://127.0.0.1:9/hook"}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = ["127.0.0.1:9"]
    found = asked(caller)
    assert dispatch(found) == "approved-for-execution"
    with every_tenant():
        assert Receipt.objects.get().retryable


def test_a_shutdown_leaves_the_attempt_alone_and_no_intent_is_written(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    found = asked(caller)
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        shutdown_engage(
            actor=actor,
            at=timezone.now(),
            scope=ShutdownScope.CONNECTOR,
            organization_id=cast.organization.id,
            target="http",
            reason_code="operator_shutdown",
            note="Incident 17",
        )
    assert dispatch(found) is None
    row = attempt(found)
    assert (row.state, row.tries, row.lease_token, row.lease_expires_at) == ("approved-for-execution", 0, 0, None)
    assert row.next_eligible_at is not None
    assert row.next_eligible_at > timezone.now()
    assert not target.requests
    with every_tenant():
        assert not DispatchIntent.objects.exists()


def test_a_suspended_contract_holds_and_a_retired_one_denies(cast: Cast, caller: Any, target: CountingTarget) -> None:
    found_contract: Contract = contract(cast)
    found = asked(caller)
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        contract_suspend(
            actor=actor, at=timezone.now(), contract_id=found_contract.id, reason_code="planned_maintenance"
        )
    assert dispatch(found) is None
    assert attempt(found).state == "approved-for-execution"
    with every_tenant():
        contract_retire(actor=actor, at=timezone.now(), contract_id=found_contract.id, reason_code="superseded")
    retry_becomes_due(found)
    assert dispatch(found) is None
    assert (attempt(found).state, attempt(found).reason_code) == ("preflight-denied", "contract_retired")
    assert not target.requests
    with every_tenant():
        assert not Slot.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_action_that_differs_from_what_was_decided_is_not_sent(
    cast: Cast, caller: Any, target: CountingTarget, disabled_guard: Any
) -> None:
    contract(cast)
    found = asked(caller)
    with disabled_guard():
        change(found, "target_ref = 'case-9999'")
    assert dispatch(found) is None
    assert (attempt(found).state, attempt(found).reason_code) == ("preflight-denied", "effect_mismatch")
    assert not target.requests


def test_an_intent_without_a_receipt_is_never_leased_again(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast, effect="idempotent")
    found = asked(caller)
    with every_tenant():
        granted = attempt_lease(
            actor=SYSTEM, at=timezone.now(), owner="worker:gone", selection=for_worker(attempt_id=found)
        ).granted
    assert len(granted) == 1
    lease_runs_out(found)
    assert dispatch(found) is None
    retry_becomes_due(found)
    assert dispatch(found) is None
    assert (attempt(found).state, case_of(found).category) == ("failed-quarantined", "outcome_unknown")
    assert not target.requests


def unknown_outcome(cast: Cast, caller: Any, *, late: bool) -> UUID:
    """A quarantined attempt, and a report of its success that is on record."""
    contract(cast)
    first = asked(caller, 1)
    with every_tenant():
        attempt_lease(actor=SYSTEM, at=timezone.now(), owner="worker:gone", selection=for_worker(attempt_id=first))
        lease_runs_out(first)
        assert leases_expire() == 1
        Receipt.objects.create(
            attempt_id=first,
            intent=DispatchIntent.objects.get(),
            outcome="success",
            late=late,
            response_metadata={"status": 200},
            at=timezone.now(),
        )
    return first


def test_a_success_that_is_known_already_ends_the_retry_with_the_cached_result(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    first = unknown_outcome(cast, caller, late=False)
    second = retry_of(first, like=asked(caller, 2))
    assert dispatch(second) is None
    assert attempt(second).state == "completed"
    assert not target.requests
    with every_tenant():
        receipt = Receipt.objects.get(attempt_id=second)
        assert (receipt.intent_id, receipt.response_metadata) == (None, {"status": 200})


def test_a_late_report_of_a_success_settles_no_retry_but_goes_to_a_person(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    first = unknown_outcome(cast, caller, late=True)
    second = retry_of(first, like=asked(caller, 2))
    assert dispatch(second) is None
    assert (attempt(second).state, case_of(second).category) == ("failed-quarantined", "outcome_unknown")
    assert not target.requests
    with every_tenant():
        assert not Receipt.objects.filter(attempt_id=second).exists()


def test_an_authorized_retry_carries_the_key_of_the_first(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    target.statuses = [500]
    first = asked(caller, 1)
    assert dispatch(first) == "failed-quarantined"
    second = retry_of(first, like=asked(caller, 2))
    assert dispatch(second) == "completed"
    assert [request["key"] for request in target.requests] == [f"hp-{first}"] * 2


def test_intake_to_completed_takes_two_commits_beside_the_intake_and_few_statements(
    cast: Cast,
    caller: Any,
    target: CountingTarget,
    django_assert_max_num_queries: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    contract(cast)
    with django_capture_on_commit_callbacks(execute=True):  # a process stores a frame once
        dispatch(asked(caller, 1))
    found = asked(caller, 2)
    with django_assert_max_num_queries(30) as captured:
        assert dispatch(found) == "completed"
    statements = [query["sql"] for query in captured.captured_queries]
    assert sum("RELEASE SAVEPOINT" in sql for sql in statements) == 2, statements
    assert sum("SAVEPOINT" not in sql for sql in statements) <= 12, statements
    with every_tenant():
        assert EnforcementDecision.objects.filter(subject_id=found, act="lease").count() == 1
