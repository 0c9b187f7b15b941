"""Beat sends a message when there is work, or when a sweep is due; it asks seldom, and ends at once."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from attempts.notify.models import CaseNotice, NotificationRoute
from attempts.notify.services.cases import case_opened
from attempts.notify.tasks import notifications_send_task
from config import due
from config.beat import DueScheduler
from config.celery import SCHEDULE
from config.celery import app as celery_app
from config.due import ASK, DUE, SWEEP_SECONDS, DueLook, due_now
from governance.schedule.hooks import scheduled_tasks
from governance.schedule.rules import NO_MARKS, RunMarks, overdue_seconds
from governance.schedule.selectors import PREFIX
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import Clinic, set_deadline
from tests.attempts.test_quarantine import quarantined
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.plans import only_these_indexes
from tests.processes import start
from tests.tampering import triggers_off
from tests.workflows.world import World, ago, brief, people
from workflows.events.models import OutboxEvent
from workflows.runs.models import WorkflowStep

pytestmark = pytest.mark.django_db


@pytest.fixture
def sealed(transactional_db: None) -> None:
    seal_all()


def moved(**changes: Any) -> None:
    with every_tenant(), triggers_off("workflows_workflowstep"):
        WorkflowStep.objects.update(**changes)


def test_every_name_is_a_scheduled_task_and_the_sweep_comes_before_one_counts_as_overdue() -> None:
    assert set(DUE) <= set(SCHEDULE)
    assert "heartbeat" not in DUE
    swept = RunMarks(began=(at := timezone.now()), ended=at)
    late = timedelta(seconds=SWEEP_SECONDS + 10)
    for one in scheduled_tasks().values():
        given = {"seconds": one.seconds, "grace": 60.0, "at": at + late, "swept": one.swept}
        assert (one.swept == SWEEP_SECONDS) is (one.name in DUE)
        if one.swept:
            assert overdue_seconds(swept, since=None, **given) is None
            assert overdue_seconds(NO_MARKS, since=at, **given) is None


def test_with_nothing_to_do_nothing_is_due(sealed: None) -> None:
    assert due_now() <= {"witnesses-push"}


@pytest.mark.tampers
def test_what_each_tick_would_do_is_seen(cast: Cast, sealed: None) -> None:
    world = World(cast, brief(timeout_seconds=60))
    world.start(at=ago(10))
    assert {"ledger-seal", "outbox-relay"} <= due_now()
    with every_tenant():
        OutboxEvent.objects.update(status="sent", sent_at=timezone.now())
    assert "outbox-relay" not in due_now()
    assert "steps-time-out" not in due_now()
    moved(timeout_at=ago(1))
    assert "steps-time-out" in due_now()
    moved(state="pending", timeout_at=None, next_eligible_at=ago(1))
    assert {"steps-time-out", "step-retries-due"} & due_now() == {"step-retries-due"}


def test_holds_are_seen_when_they_are_over_and_runs_when_they_wait_for_a_slot(cast: Cast) -> None:
    held = Clinic(cast).hold()
    assert "notifications-send" not in due_now(), "nobody is told: no task would ever mark it as announced"
    with every_tenant():
        NotificationRoute.objects.create(organization=cast.organization, channel="email", created_at=timezone.now())
    assert "notifications-send" in due_now()
    assert {"reviews-expire", "instances-hand-out"} & due_now() == set()
    set_deadline(held, seconds=-1)
    assert "reviews-expire" in due_now()
    world = World(cast, people())
    world.caps(max_concurrency=0)
    world.start()
    assert "instances-hand-out" in due_now()
    assert notifications_send_task is not None


def test_a_notice_of_a_case_that_is_to_be_tried_again_is_seen(cast: Cast) -> None:
    with every_tenant():
        case_opened(quarantined(cast), at=timezone.now())
    assert "notifications-send" in due_now()
    with every_tenant():
        CaseNotice.objects.update(next_try_at=timezone.now() + timedelta(hours=1))
    assert "notifications-send" not in due_now()


QUESTION_READS = (
    "review_due",
    "attempt_leased",
    "attempt_lines",
    "attempt_queue_order",
    "step_timeout",
    "step_retry_due",
    "step_due",
    "instance_deadline",
    "instance_queue",
    "nudge_due",
    "outbox_due",
    "delivery_due",
    "notification_due",
    "notification_refresh",
    "case_notice_due",
    "route_once",
    "review_unannounced",
    "bulk_unfinished",
    "erasure_unfinished",
    "evidence_unfinished",
    "evidence_to_remove",
)


def test_the_question_reads_indexes_and_no_table() -> None:
    only_these_indexes(QUESTION_READS)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute("EXPLAIN " + ASK, {"witnesses": ["file"], "first": "0" * 32})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    for index in QUESTION_READS:
        assert f"using {index}" in plan, f"{index} is not used:\n{plan}"
    assert set(re.findall(r"Seq Scan on (\w+)", plan)) <= {"workflows_webhookcursor"}, "it has one row"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Seconds pass when the test says so."""
    now = [1000.0]
    monkeypatch.setattr(due.time, "monotonic", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes  # type: ignore[return-value]


def test_a_message_goes_when_there_is_work_and_at_every_sweep(cast: Cast, sealed: None, clock: Any) -> None:
    look = DueLook()
    assert look.wants("heartbeat"), "whatever is not asked about is sent at every interval"
    assert look.wants("outbox-relay"), "the first one is the sweep's"
    clock(2)
    assert not look.wants("outbox-relay")
    World(cast, brief()).start(at=ago(10))
    assert not look.wants("outbox-relay"), "it asked a moment ago"
    clock(2)
    assert look.wants("outbox-relay")
    with every_tenant():
        OutboxEvent.objects.update(status="sent")
    clock(2)
    assert not look.wants("outbox-relay")
    clock(SWEEP_SECONDS)
    assert look.wants("outbox-relay")


def test_many_ticks_of_one_moment_ask_once(sealed: None, clock: Any) -> None:
    look = DueLook()
    for name in DUE:
        look.wants(name)
    clock(2)
    with CaptureQueriesContext(connection) as asked:
        for name in list(DUE) * 3:
            look.wants(name)
    assert len(asked) == 1


def test_without_an_answer_everything_is_sent(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    look = DueLook()
    for name in DUE:
        look.wants(name)
    clock(2)
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT before")
    monkeypatch.setattr(due, "ASK", "SELECT nothing_like_this")
    monkeypatch.setattr(connection, "close", lambda: None)
    assert all(look.wants(name) for name in DUE)
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK TO SAVEPOINT before")


def scheduler() -> DueScheduler:
    return DueScheduler(app=celery_app)


@pytest.mark.django_db(transaction=True)
def test_beat_asks_for_changes_of_the_schedule_every_few_seconds_and_not_at_every_tick() -> None:
    made = scheduler()
    assert PREFIX + "heartbeat" in made.schedule
    made.schedule_changed()
    with CaptureQueriesContext(connection) as asked:
        for _ in range(100):
            assert made.schedule
    assert len(asked) == 0
    PeriodicTask.objects.filter(name=PREFIX + "heartbeat").update(enabled=False)
    PeriodicTasks.update_changed()
    made._compared = float("-inf")
    assert PREFIX + "heartbeat" not in made.schedule


@pytest.mark.django_db(transaction=True)
def test_one_pass_sends_everything_whose_interval_is_over_and_nothing_twice(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []

    def noted(_: Any, entry: Any, producer: Any = None) -> None:
        sent.append(entry.name.removeprefix(PREFIX))

    monkeypatch.setattr(DueScheduler, "apply_entry", noted)
    made = scheduler()
    made.producer = None

    def passes(seconds: float) -> list[str]:
        clock(seconds)
        sent.clear()
        assert 0 < made.tick() <= 1
        return sorted(sent)

    every = {name: seconds for name, (_, seconds) in SCHEDULE.items()}
    assert set(passes(0)) >= set(every)
    assert passes(0) == []
    assert passes(1) == [name for name in sorted(every) if every[name] == 1]
    assert passes(1) == [name for name in sorted(every) if every[name] <= 2]
    late = passes(7)
    assert late == [name for name in sorted(every) if every[name] <= 5], "what was missed is not made up for"
    assert passes(1) == [name for name in sorted(every) if every[name] in (1, 5, 10)]


def test_ending_writes_nothing() -> None:
    made = scheduler()
    made._dirty.add(PREFIX + "heartbeat")
    with CaptureQueriesContext(connection) as asked:
        made.close()
    assert len(asked) == 0


def _beat_in_a_statement() -> None:
    """Beat as its command starts it, with a look that the signal interrupts."""

    def asleep() -> set[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        return set()

    due.due_now = asleep
    celery_app.start(["--skip-checks", "beat", "--scheduler=config.beat:DueScheduler", "--pidfile="])
    sys.exit(0)


def _asks(*, within: float) -> bool:
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'")
            if cursor.fetchone():
                return True
        time.sleep(0.1)
    return False


@pytest.mark.django_db(transaction=True)
def test_beat_ends_at_once_in_the_middle_of_a_statement() -> None:
    child = start(_beat_in_a_statement)
    assert _asks(within=30)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGTERM)
    began = time.monotonic()
    child.join(10)
    assert not child.is_alive()
    assert time.monotonic() - began < 3
