"""The clock: ends leases, rings for what is due, hands out places. Twice, late and over a poisoned row."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from celery import current_app
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from attempts.execution import tasks as execution
from attempts.execution.services import outcome as retry
from attempts.execution.services import queue
from attempts.execution.services.lease import Go, Leases, attempt_lease, for_worker
from attempts.execution.services.lease_expire import leases_expire
from attempts.execution.services.outcome import FailureReport, FencedReport, attempt_fail, retries_due
from attempts.execution.services.queue import queue_dispatch
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.services.slots import slot_or_queue, slots_release
from attempts.lifecycle.services.transition import transition_apply
from attempts.lifecycle.states import DISPATCH
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.states import QuarantineCategory
from governance.contracts.services.contracts import contract_suspend
from governance.ledger.models import LedgerEntry
from governance.sql.insert import insert_together
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import (
    actions_of,
    ask,
    asked,
    attempt,
    capacity,
    change,
    contract,
    lease_runs_out,
    other_attempts,
    retry_becomes_due,
)
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.governed import HOLD


def take(attempt_id: UUID) -> None:
    with every_tenant():
        leases = attempt_lease(
            actor=SYSTEM, at=timezone.now(), owner="worker:gone", selection=for_worker(attempt_id=attempt_id)
        )
    assert len(leases.granted) == 1


def expire() -> int:
    with every_tenant():
        return leases_expire()


def hand_out() -> int:
    with every_tenant():
        return queue_dispatch()


def queued(attempt_id: UUID, seconds: int = 30) -> None:
    """As intake leaves an attempt that found its caps full."""
    with every_tenant():
        slots_release(attempt_id=attempt_id)
    change(attempt_id, f"next_eligible_at = NULL, queued_until = clock_timestamp() + interval '{seconds} seconds'")


def test_an_unanswered_intent_is_quarantined_at_the_leases_end_by_the_clock(cast: Cast, caller: Any) -> None:
    contract(cast)
    found = asked(caller)
    take(found)
    assert expire() == 0
    lease_runs_out(found)
    deadline = attempt(found).lease_expires_at
    assert deadline is not None
    assert expire() == 1
    assert expire() == 0
    with every_tenant():
        case = QuarantineCase.objects.get()
        move = AttemptTransition.objects.filter(attempt_id=found).last()
        assert move is not None
        assert (move.actor_kind, move.at, case.opened_at) == ("clock", deadline, deadline)
        assert case.escalate_at == deadline + timedelta(hours=1)
        entry = LedgerEntry.objects.filter(subject_id=found).latest("id")
        assert (entry.action, entry.actor_kind, entry.reason_code) == (
            "attempt.quarantined",
            "clock",
            "outcome_unknown",
        )
        assert not Slot.objects.exists()


def test_a_lease_without_an_intent_is_given_back_and_nothing_is_recorded(cast: Cast, caller: Any) -> None:
    contract(cast)
    found = asked(caller)
    change(found, "lease_owner = 'old', lease_token = 1, next_eligible_at = NULL")
    lease_runs_out(found)
    before = actions_of(found)
    assert expire() == 1
    row = attempt(found)
    assert (row.lease_expires_at, row.lease_owner, row.state) == (None, "", "approved-for-execution")
    assert actions_of(found) == before
    take(found)
    assert attempt(found).lease_token == 2


def test_a_poisoned_row_does_not_stop_the_others(cast: Cast, caller: Any) -> None:
    contract(cast)
    found = [asked(caller, number) for number in range(1, 4)]
    for one in found:
        take(one)
        lease_runs_out(one)
    # The first one's case exists already, which cannot be: its handling raises every time.
    with every_tenant():
        QuarantineCase.objects.create(
            organization=cast.organization,
            attempt_id=found[0],
            category="timeout",
            reason_code="adapter_failed",
            escalation_owner="trust-operations",
            escalate_at=timezone.now(),
            opened_at=timezone.now(),
        )
    assert expire() == 2
    assert [attempt(one).state for one in found] == [
        "approved-for-execution",
        "failed-quarantined",
        "failed-quarantined",
    ]
    assert expire() == 0


def test_more_poisoned_rows_than_a_page_still_let_the_rest_pass(
    cast: Cast, caller: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attempts.execution.services.lease_expire.PAGE", 1)
    test_a_poisoned_row_does_not_stop_the_others(cast, caller)


def rings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr(retry, "wake_up_once", heard.append)
    return heard


def test_the_bell_rings_for_what_is_due_and_ours(cast: Cast, caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contract(cast)
    due, later, leased = asked(caller, 1), asked(caller, 2), asked(caller, 3)
    asked(caller, 4, runtime_mode="client_driven")
    asked(caller, 5, runtime_mode="shadow")
    change(due, "next_eligible_at = clock_timestamp() + interval '1 minute'")
    change(later, "next_eligible_at = clock_timestamp() + interval '1 minute'")
    take(leased)
    heard = rings(monkeypatch)
    with every_tenant():
        assert retries_due() == 0
        retry_becomes_due(due)
        assert retries_due() == 1
    assert heard == [DISPATCH], "once for all: the worker takes the one whose turn it is"


def test_a_queued_attempt_gets_the_place_that_became_free(cast: Cast, caller: Any) -> None:
    contract(cast)
    found = asked(caller)
    queued(found)
    assert hand_out() == 1
    assert hand_out() == 0
    row = attempt(found)
    assert row.queued_until is None
    assert row.next_eligible_at is not None
    with every_tenant():
        assert Slot.objects.filter(attempt_id=found).count() == 1
        entry = LedgerEntry.objects.filter(subject_id=found).latest("id")
        assert (entry.action, entry.actor_kind) == ("attempt.placed", "clock")


def test_who_waited_too_long_is_denied_at_the_end_of_the_wait(cast: Cast, caller: Any) -> None:
    contract(cast)
    found = asked(caller)
    queued(found, seconds=-5)
    deadline = attempt(found).queued_until
    assert hand_out() == 0
    row = attempt(found)
    assert (row.state, row.reason_code, row.ended_at) == ("preflight-denied", "concurrency_limit", deadline)


def test_a_full_workflow_does_not_keep_another_one_waiting(cast: Cast, caller: Any) -> None:
    limits = {"per_key": 1, "per_context": None, "per_workflow": 1, "per_tenant": None}
    for slug in ("close-case", "open-case"):
        contract(cast, slug=slug, changes={"concurrency_and_locks": {"limits": limits, "when_busy": "queue"}})
    running = asked(caller, 1)
    waiting = []
    for number in range(2, 5):
        waiting.append(asked(caller, number))
        queued(waiting[-1])
    other = asked(caller, 9, slug="open-case")
    queued(other)
    assert hand_out() == 1
    assert attempt(other).queued_until is None
    with every_tenant():
        slots_release(attempt_id=running)
    assert hand_out() == 1
    assert [attempt(one).queued_until is None for one in waiting] == [True, False, False]


@pytest.mark.parametrize("cap", ["per_context", "per_user"])
def test_a_thousand_that_wait_for_one_context_or_person_do_not_keep_another_waiting(
    cast: Cast, caller: Any, cap: str
) -> None:
    limits = {"per_key": 1, "per_context": None, "per_workflow": None, "per_tenant": None, cap: 1}
    contract(cast, changes={"concurrency_and_locks": {"limits": limits, "when_busy": "queue"}})
    asked(caller, 1)  # has the context, for its person
    behind = asked(caller, 2, patient_context_ref="ctx-0001")
    assert attempt(behind).queued_until is not None
    copies(behind, 1000)
    other = asked(cast.api("attempts:create", responsible=cast.auditor), 3)
    queued(other, 3000)
    assert hand_out() == 1
    assert attempt(other).queued_until is None
    with CaptureQueriesContext(connection) as statements:
        assert hand_out() == 0
    assert len(statements) < 20, "one try finds the cap full, and the attempts under it are not read again"


def copies(attempt_id: UUID, number: int) -> None:
    """As many more that wait for the same."""
    with every_tenant():
        row = Attempt.objects.get(id=attempt_id)
        Attempt.objects.bulk_create(
            [
                Attempt(
                    **{field.attname: getattr(row, field.attname) for field in Attempt._meta.fields} | {"id": uuid7()}
                )
                for _ in range(number)
            ]
        )


def test_places_are_handed_out_by_capacity_units(cast: Cast, caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_PER_TICK", 8)
    contract(cast)
    capacity(cast.organization, capacity_units=3)
    capacity(cast.other, capacity_units=1)
    large = [asked(caller, number) for number in range(11, 19)]
    small = other_attempts(cast, [asked(caller, number) for number in range(1, 9)])
    for one in [*small, *large]:
        queued(one, 3000)
    assert hand_out() == 8
    assert sum(attempt(one).queued_until is None for one in large) == 6
    assert sum(attempt(one).queued_until is None for one in small) == 2


def test_a_queued_attempt_is_not_leased(cast: Cast, caller: Any, target: CountingTarget) -> None:
    contract(cast)
    found = asked(caller)
    queued(found)
    change(found, "next_eligible_at = clock_timestamp() - interval '1 second'")
    with every_tenant():
        leases = attempt_lease(
            actor=SYSTEM, at=timezone.now(), owner="worker:1", selection=for_worker(attempt_id=found)
        )
        assert leases.granted == []
        assert Attempt.objects.get(id=found).lease_token == 0


@pytest.mark.parametrize(("when_busy", "seconds"), [("queue", 60), ("deny", 3600)])
def test_what_people_release_while_a_cap_is_full_waits_and_is_not_refused(
    cast: Cast, caller: Any, when_busy: str, seconds: int
) -> None:
    limits = {"per_key": 1, "per_context": None, "per_workflow": None, "per_tenant": None}
    rules = {"limits": limits, "when_busy": when_busy, "queue_timeout_seconds": 60}
    contract(cast, rules=HOLD, changes={"concurrency_and_locks": rules})
    capacity(cast.organization, max_concurrency=0)
    found = UUID(ask(caller).json()["id"])
    with every_tenant(), transaction.atomic():
        row, at = Attempt.objects.get(id=found), timezone.now()
        entry = slot_or_queue(row, actor=SYSTEM, at=at)
        assert entry is not None
        transition_apply(row, "approve", actor=SYSTEM, at=at)
        insert_together([entry])
    row = attempt(found)
    assert (row.next_eligible_at, row.queued_until) == (None, at + timedelta(seconds=seconds))
    assert actions_of(found)[-2:] == ["attempt.queued", "attempt.approved"]
    assert hand_out() == 0
    capacity(cast.organization, max_concurrency=1)
    assert hand_out() == 1
    assert attempt(found).next_eligible_at is not None


def leased(attempt_id: UUID) -> Leases:
    with every_tenant():
        return attempt_lease(
            actor=SYSTEM, at=timezone.now(), owner="worker:1", selection=for_worker(attempt_id=attempt_id)
        )


def failed_once(attempt_id: UUID) -> None:
    """A first try that failed and may be repeated."""
    granted = leased(attempt_id).granted[0]
    report = FencedReport(attempt_id, granted.attempt.lease_token, "worker:1")
    failure = FailureReport(QuarantineCategory.ADAPTER_FAILURE, retryable=True)
    with every_tenant():
        attempt_fail(actor=SYSTEM, at=timezone.now(), report=report, failure=failure)


def test_a_retry_that_waits_has_no_slot_and_takes_one_again_when_it_runs(cast: Cast, caller: Any) -> None:
    contract(cast, effect="idempotent")
    found = asked(caller)
    failed_once(found)
    with every_tenant():
        assert not Slot.objects.exists()
    retry_becomes_due(found)
    assert len(leased(found).granted) == 1
    with every_tenant():
        assert Slot.objects.get().attempt_id == found


def test_a_due_retry_that_finds_no_slot_queues_and_ends_in_quarantine_when_it_never_gets_one(
    cast: Cast, caller: Any
) -> None:
    contract(cast, effect="idempotent")
    found = asked(caller)
    failed_once(found)
    capacity(cast.organization, max_concurrency=0)
    retry_becomes_due(found)
    leases = leased(found)
    assert (leases.granted, [checked.go for _, checked in leases.refused]) == ([], [Go.QUEUED])
    row = attempt(found)
    assert (row.tries, row.lease_token, row.next_eligible_at, row.queued_until is None) == (1, 1, None, False)
    assert actions_of(found)[-1] == "attempt.queued"
    change(found, "queued_until = clock_timestamp() - interval '1 second'")
    assert hand_out() == 0
    assert attempt(found).state == "failed-quarantined"


def test_an_attempt_whose_contract_is_closed_waits_without_a_slot(cast: Cast, caller: Any) -> None:
    made = contract(cast)
    found = asked(caller)
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        contract_suspend(actor=actor, at=timezone.now(), contract_id=made.id, reason_code="planned_maintenance")
    assert leased(found).granted == []
    with every_tenant():
        assert not Slot.objects.exists()


def test_the_doors_of_the_clock_and_the_worker_act_in_every_organization(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast)
    sent, waiting, lost = asked(caller, 1), asked(caller, 2), asked(caller, 3)
    queued(waiting)
    take(lost)
    lease_runs_out(lost)
    execution.attempt_dispatch_task(str(sent))
    execution.leases_expire_task()
    execution.queue_dispatch_task()
    execution.retries_due_task()
    assert [attempt(one).state for one in (sent, waiting, lost)] == [
        "completed",
        "approved-for-execution",
        "failed-quarantined",
    ]
    names = {task.rsplit(".", 1)[1] for task in current_app.tasks if task.startswith("attempts.tasks.execution.")}
    assert names == {"attempt_dispatch", "step_dispatch", "leases_expire", "queue_hand_out", "retries_due"}
