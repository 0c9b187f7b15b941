"""A real worker process, killed with -9 or stopped at each named point. Nothing acknowledged is lost, nothing is done
twice, and what nobody can know is said to be unknown."""

import json
import os
import signal
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.utils import timezone

from attempts.models import DispatchIntent, QuarantineCase, Receipt, Slot
from attempts.services.dispatch import attempt_dispatch
from attempts.services.lease_expire import leases_expire
from attempts.services.quarantine_resolve import Order, quarantine_authorize_retry
from config.env import BASE_DIR
from governance.models import GovernanceViolation
from reasoncodes.tenancy import every_tenant
from tests.attempts.execution.support import asked, attempt, contract, lease_runs_out
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.stack.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE_THE_INTENT = ("before_lease", "after_lease")
AFTER_THE_INTENT = ("after_intent", "during_call", "after_answer", "before_commit")


def start_worker(attempt_id: UUID, target: CountingTarget, *, crash_at: str = "") -> "subprocess.Popen[bytes]":
    database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    told = {"HOLDPOINT_HTTP_TARGETS": {"clinic/close-case": target.url}, "HOLDPOINT_HTTP_ALLOW_PRIVATE": [target.host]}
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "DATABASE_URL": database,
        "SECRET_KEY": django_settings.SECRET_KEY,
        "WORKER_SETTINGS": json.dumps(told),
        "HOLDPOINT_CRASH_AT": crash_at,
        "PYTHONPATH": str(BASE_DIR),
    }
    command = [sys.executable, "-m", "tests.attempts.execution.worker", str(attempt_id)]
    return subprocess.Popen(command, cwd=BASE_DIR, env=environment, stdout=subprocess.DEVNULL)


def run_and_kill(attempt_id: UUID, target: CountingTarget, point: str) -> None:
    if point == "during_call":
        target.hold = True
        worker = start_worker(attempt_id, target)
        assert target.arrived.wait(60)
        worker.kill()
        worker.wait(30)
        target.hold = False
        target.release.set()
    else:
        worker = start_worker(attempt_id, target, crash_at=point)
        worker.wait(60)
    assert worker.returncode == -signal.SIGKILL


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
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            case_id=case.id,
            order=Order(finding="did_not_happen", evidence_ref="incident-17", deployment_region="US"),
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
    assert attempt(found).state == "approved-for-execution"
    time_passes(found)
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
        worker.send_signal(signal.SIGSTOP)
        lease_runs_out(found)
        with every_tenant():
            assert leases_expire() == 1
        target.release.set()
        worker.send_signal(signal.SIGCONT)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait(30)
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
