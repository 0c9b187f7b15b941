"""A real worker process, killed with -9 or stopped at each named point. Nothing acknowledged is lost, nothing is done
twice, and what nobody can know is said to be unknown."""

import os
import signal
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.lease_expire import leases_expire
from attempts.lifecycle.models import Slot
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.services.resolve import ResolutionOrder, quarantine_authorize_retry
from governance.enforcement.models import EnforcementDecision
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import asked, attempt, contract, lease_runs_out
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.processes import ended, start
from tests.stack.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE_THE_INTENT = ("before_lease", "after_lease")
AFTER_THE_INTENT = ("after_intent", "during_call", "after_answer", "before_commit")


def start_worker(attempt_id: UUID, target: CountingTarget, *, crash_at: str = "") -> BaseProcess:
    told = {"HOLDPOINT_HTTP_TARGETS": {"clinic/close-case": target.url}, "HOLDPOINT_HTTP_ALLOW_PRIVATE": [target.host]}
    return start(dispatch, attempt_id, environment={"HOLDPOINT_CRASH_AT": crash_at}, settings=told)


def dispatch(attempt_id: UUID) -> None:
    attempt_dispatch(attempt_id=attempt_id, now=timezone.now)


def run_and_kill(attempt_id: UUID, target: CountingTarget, point: str) -> None:
    if point == "during_call":
        target.hold = True
        worker = start_worker(attempt_id, target)
        assert target.arrived.wait(60)
        worker.kill()
        code = ended(worker)
        target.hold = False
        target.release.set()
    else:
        code = ended(start_worker(attempt_id, target, crash_at=point))
    assert code == -signal.SIGKILL


def time_passes(attempt_id: UUID) -> None:
    """The lease runs out, the ticks come by, and the bell rings again."""
    if attempt(attempt_id).lease_expires_at is not None:
        lease_runs_out(attempt_id)
    with every_tenant():
        leases_expire()
    attempt_dispatch(attempt_id=attempt_id, now=timezone.now)


def authorize_retry(cast: Cast, attempt_id: UUID) -> UUID:
    with every_tenant():
        case = QuarantineCase.objects.get(attempt_id=attempt_id)
        answer = quarantine_authorize_retry(
            # Not Alice: she is responsible for the service that asked.
            actor=cast.actor(cast.second_operator, [cast.organization]),
            at=timezone.now(),
            case_id=case.id,
            order=ResolutionOrder(finding="did_not_happen", evidence_ref="incident-17", deployment_region="US"),
        )
    assert answer.attempt_id is not None
    return answer.attempt_id


@pytest.mark.parametrize("effect", ["once", "idempotent"])
@pytest.mark.parametrize("point", BEFORE_THE_INTENT)
def test_killed_before_the_intent_the_attempt_is_simply_executed_later(
    cast: Cast, caller: Any, target: CountingTarget, effect: str, point: str
) -> None:
    contract(cast, effect=effect)
    found = asked(caller)
    run_and_kill(found, target, point)
    with every_tenant():
        assert not DispatchIntent.objects.exists()
        assert not EnforcementDecision.objects.filter(subject_id=found).exists()
    assert attempt(found).state == "approved-for-execution"
    time_passes(found)
    with every_tenant():
        assert EnforcementDecision.objects.filter(subject_id=found, act="lease").count() == 1
    assert attempt(found).state == "completed"
    assert target.effects == {f"hp-{found}": 1}


@pytest.mark.parametrize("point", AFTER_THE_INTENT)
def test_killed_after_the_intent_effect_once_happens_at_most_once_and_is_said_to_be_unknown(
    cast: Cast, caller: Any, target: CountingTarget, point: str
) -> None:
    contract(cast)
    found = asked(caller)
    run_and_kill(found, target, point)
    for _ in range(3):
        time_passes(found)
    assert sum(target.effects.values()) == (0 if point == "after_intent" else 1)
    row = attempt(found)
    assert (row.state, row.reason_code) == ("failed-quarantined", "outcome_unknown")
    with every_tenant():
        assert DispatchIntent.objects.count() == 1
        assert not Receipt.objects.exists()
        assert QuarantineCase.objects.get().category == "outcome_unknown"
        assert not Slot.objects.exists()


@pytest.mark.parametrize("point", AFTER_THE_INTENT)
def test_killed_after_the_intent_effect_idempotent_is_exactly_one_after_a_person_authorized_the_retry(
    cast: Cast, caller: Any, target: CountingTarget, point: str
) -> None:
    contract(cast, effect="idempotent")
    found = asked(caller)
    run_and_kill(found, target, point)
    time_passes(found)
    assert attempt(found).reason_code == "outcome_unknown"
    second = authorize_retry(cast, found)
    time_passes(second)
    assert attempt(second).state == "completed"
    assert attempt(found).state == "failed-quarantined"
    assert set(target.effects) == {f"hp-{found}"}


def test_a_worker_that_was_stopped_for_too_long_reports_late_and_only_leaves_evidence(
    cast: Cast, caller: Any, target: CountingTarget
) -> None:
    contract(cast, effect="idempotent")
    found = asked(caller)
    target.pause = True
    worker = start_worker(found, target)
    try:
        assert target.arrived.wait(60)
        os.kill(worker.pid, signal.SIGSTOP)
        lease_runs_out(found)
        with every_tenant():
            assert leases_expire() == 1
        target.release.set()
        os.kill(worker.pid, signal.SIGCONT)
        assert ended(worker) == 0
    finally:
        worker.kill()
    assert (attempt(found).state, attempt(found).reason_code) == ("failed-quarantined", "outcome_unknown")
    with every_tenant():
        receipt = Receipt.objects.get()
        assert (receipt.late, receipt.outcome) == (True, "success")
        violation = GovernanceViolation.objects.get()
        assert (violation.kind, violation.organization_id) == ("stale_lease", cast.organization.id)


def test_a_crash_point_is_inert_where_no_demo_is_allowed(
    cast: Cast, caller: Any, target: CountingTarget, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEMO_ALLOWED = False
    monkeypatch.setenv("HOLDPOINT_CRASH_AT", "after_intent")
    contract(cast)
    found = asked(caller)
    attempt_dispatch(attempt_id=found, now=timezone.now)
    wait_for(lambda: attempt(found).state == "completed", seconds=5, what="completed")
