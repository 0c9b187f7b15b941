"""How scheduled tasks fail: one row by itself, and all of them only with the server."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
import structlog
from django.db import IntegrityError, OperationalError, connection
from structlog.testing import capture_logs

from attempts.lifecycle.services import due
from attempts.lifecycle.services.due import each_due
from attempts.metrics import TICK_ROWS_FAILED

ROWS = [uuid4() for _ in range(4)]


@pytest.fixture(autouse=True)
def _a_logger_that_was_not_used_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was used keeps the processors of its time, which `capture_logs` cannot reach once logging was set up
    again."""
    monkeypatch.setattr(due, "log", structlog.get_logger("holdpoint.ticks"))


def failed_so_far() -> float:
    value: float = TICK_ROWS_FAILED.labels("test")._value.get()
    return value


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        (IntegrityError, "INSERT INTO seen SELECT id FROM seen"),
        (OperationalError, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END $$"),
        (ZeroDivisionError, ""),
    ],
)
def test_a_row_that_cannot_be_handled_is_logged_and_counted_and_does_not_stop_the_rest(
    transactional_db: None, kind: type[Exception], statement: str
) -> None:
    def handle(row: UUID) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO seen VALUES (%s)", [row])
            if row == ROWS[1]:
                cursor.execute(statement) if statement else 1 / 0
        return row != ROWS[2]

    before = failed_so_far()
    with connection.cursor() as cursor, capture_logs() as logs:
        cursor.execute("CREATE TEMPORARY TABLE seen (id uuid PRIMARY KEY)")
        try:
            assert each_due(ROWS, handle, tick="test") == 2
            cursor.execute("SELECT id FROM seen")
            assert {row[0] for row in cursor.fetchall()} == {ROWS[0], ROWS[2], ROWS[3]}
        finally:
            cursor.execute("DROP TABLE seen")
    (said,) = [one for one in logs if one["event"] == "tick_row_failed"]
    assert (said["tick"], said["row_id"], said["error"]) == ("test", str(ROWS[1]), kind.__name__)
    assert failed_so_far() == before + 1


def test_a_lost_connection_is_one_row_and_a_lost_server_is_raised(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[UUID] = []

    def handle(row: UUID) -> bool:
        tried.append(row)
        if row == ROWS[2]:  # from now on nothing answers there
            patched.setitem(connection.settings_dict, "HOST", str(tmp_path))
            patched.setitem(connection.settings_dict, "OPTIONS", {"connect_timeout": 2})
        if row != ROWS[0]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return True

    with monkeypatch.context() as patched, capture_logs() as logs, pytest.raises(OperationalError):
        each_due(ROWS, handle, tick="test")
    connection.close()
    assert tried == ROWS[:3]
    assert [one["row_id"] for one in logs if one["event"] == "tick_row_failed"] == [str(ROWS[1])]
