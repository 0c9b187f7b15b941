"""Watchers in separate processes: killed ones, two at once. No lock stays, nothing is found that is not there."""

import os
import signal
import threading
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from governance.integrity.models import RecordFault, RecordProgress
from governance.integrity.services.check import record_check
from governance.integrity.services.watch import AGAIN, LOCK, LastLook, record_watch
from governance.integrity.tasks import record_watch_task
from governance.ledger.models import LedgerEntry
from governance.shutdown.models import Shutdown
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import asked, contract
from tests.cast import Cast
from tests.governance.ledger.sealing import seal_all
from tests.governance.record.world import record_verified
from tests.processes import ended, start
from tests.tampering import triggers_off

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.tampers]
SECOND = timedelta(seconds=1)


@pytest.fixture
def attempts(cast: Cast) -> list[Any]:
    contract(cast, adapter="external", effect="idempotent")
    client = cast.api("attempts:create")
    made = [asked(client, number, connector="external", runtime_mode="client_driven") for number in range(1, 6)]
    seal_all()
    return made


def killed_while_it_looks() -> None:
    """Dies inside the watcher's transaction, with its lock held: the clock it asks before each step kills it."""

    def clock() -> float:
        if RecordProgress.objects.filter(id=1).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    with every_tenant():
        record_watch(at=timezone.now(), seconds=60, clock=clock)


def killed_before_it_records(at: datetime) -> None:
    from governance.integrity.services import watch

    def dies(**facts: Any) -> list[RecordFault]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    watch.faults_record = dies
    with every_tenant():
        record_watch(at=at, seconds=60)


def lock_held() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", [LOCK])
        return bool(cursor.fetchone()[0])


def lock_gone() -> None:
    """The server notices that a killed client is gone when it next writes to it."""
    deadline = time.monotonic() + 10
    while lock_held():
        assert time.monotonic() < deadline, "the lock of a killed watcher stays"
        time.sleep(0.05)


def test_a_killed_watcher_leaves_no_lock_and_no_alarm(attempts: list[Any]) -> None:
    assert ended(start(killed_while_it_looks)) == -signal.SIGKILL
    lock_gone()
    record_watch_task()
    with every_tenant():
        assert (RecordFault.objects.count(), Shutdown.objects.count()) == (0, 0)
        assert RecordProgress.objects.get().checked_to > 0


def test_what_a_killed_watcher_had_found_is_found_again(attempts: list[Any]) -> None:
    record_watch_task()
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempt SET operation = 'forged' WHERE id = %s", [attempts[0]])
    assert ended(start(killed_before_it_records, timezone.now())) == -signal.SIGKILL
    with every_tenant():
        assert RecordFault.objects.count() == 0
    lock_gone()
    for _ in range(2):
        record_watch_task()
    with every_tenant():
        assert list(RecordFault.objects.values_list("row", flat=True)) == [str(attempts[0])]


def test_a_second_watcher_has_nothing_to_do(attempts: list[Any]) -> None:
    inside, let_go, found = threading.Event(), threading.Event(), []

    def clock() -> float:
        inside.set()
        let_go.wait(30)
        return time.monotonic()

    def first() -> None:
        try:
            with every_tenant():
                found.append(record_watch(at=timezone.now(), seconds=1, clock=clock))
        finally:
            connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert inside.wait(30)
        with every_tenant():
            assert record_watch(at=timezone.now(), seconds=1) == 0
            assert not RecordProgress.objects.exists(), "the second one must not have looked"
    finally:
        let_go.set()
        thread.join(30)
    assert found == [0]
    assert not lock_held()
    assert RecordProgress.objects.get().checked_to > 0


def test_two_finders_at_once_record_a_fault_once(attempts: list[Any]) -> None:
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempt SET operation = 'forged' WHERE id = %s", [attempts[0]])
    processes = [start(record_watch_task) for _ in range(3)]
    assert [ended(process) for process in processes] == [0, 0, 0]
    record_watch_task()
    with every_tenant():
        assert RecordFault.objects.count() == 1
        assert Shutdown.objects.count() == 1
        assert LedgerEntry.objects.filter(action="record.fault_found").count() == 1


def test_two_processes_find_what_one_finds(attempts: list[Any]) -> None:
    with triggers_off("attempts_attempt", "attempts_idempotencyrecord"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempt SET operation = 'forged' WHERE id = ANY(%s)", [attempts[:2]])
        cursor.execute("DELETE FROM attempts_idempotencyrecord WHERE attempt_id = %s", [attempts[2]])
    with every_tenant():
        one, two = (record_check(full=True, at=timezone.now(), processes=count).as_json() for count in (1, 2))
    assert one == two == record_verified("--full")
    assert {fault["id"] for fault in one["faults"]} > {str(attempt) for attempt in attempts[:2]}


@pytest.mark.parametrize("ahead", [1, 7])
def test_a_row_with_a_later_version_than_the_ledger_has_is_named_by_a_round(attempts: list[Any], ahead: int) -> None:
    record_watch_task()
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attempts_attempt SET operation = 'forged', row_version = row_version + %s WHERE id = %s",
            [ahead, attempts[0]],
        )
    with every_tenant():
        assert [fault.id for fault in record_check(full=True, at=timezone.now()).faults] == [str(attempts[0])]
    for _ in range(2):
        record_watch_task()
    with every_tenant():
        assert list(RecordFault.objects.values_list("row", flat=True)) == [str(attempts[0])]


def test_without_full_only_what_is_new_is_compared(attempts: list[Any], cast: Cast) -> None:
    record_watch_task()
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempt SET operation = 'forged' WHERE id = %s", [attempts[0]])
    new = asked(cast.api("attempts:create"), 9, connector="external", runtime_mode="client_driven")
    seal_all()
    with triggers_off("attempts_attempt"), connection.cursor() as cursor:
        cursor.execute("UPDATE attempts_attempt SET operation = 'forged' WHERE id = %s", [new])
    with every_tenant():
        short, full = (record_check(full=full, at=timezone.now()) for full in (False, True))
    assert [fault.id for fault in short.faults] == [str(new)]
    assert {fault.id for fault in full.faults} == {str(attempts[0]), str(new)}
    assert 0 < short.rows < full.rows


def counters_are_told() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")


def looks(last: LastLook, at: datetime) -> int:
    """How many statements it takes; the tables' counters are up to date."""
    counters_are_told()
    with every_tenant(), CaptureQueriesContext(connection) as asked:
        record_watch(at=at, seconds=60, last=last)
    return len(asked)


def test_where_nothing_was_written_nothing_is_read_again_for_some_minutes(attempts: list[Any]) -> None:
    last, at = LastLook(), timezone.now()
    assert looks(last, at) > 50
    assert looks(last, at + SECOND) <= 4
    assert RecordProgress.objects.get().checked_at == at + SECOND
    assert looks(last, at + AGAIN) > 50, "the counters prove nothing, so it looks again all the same"
    with every_tenant(), triggers_off("attempts_attempt"):
        Attempt.objects.filter(id=attempts[0]).update(target_ref="another")
    assert looks(last, at + AGAIN + SECOND) > 50
    with every_tenant():
        assert [fault.row for fault in RecordFault.objects.all()] == [str(attempts[0])]
