"""Prepared statements on the bare protocol: what goes in comes out, and what breaks off leaves nothing behind."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum, StrEnum
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, transaction
from psycopg.pq import PipelineStatus, TransactionStatus

from governance.enforcement.sql import SEND_LOCK, TAKE_SEND_LOCK
from governance.sql.statements import fetch
from governance.sql.wire import MOST_PREPARED, PostgresWire, as_text, ready

AT = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
HELD = f"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objid = {SEND_LOCK}"  # noqa: S608


class Colour(StrEnum):
    RED = "red"


class Mixed(str, Enum):  # noqa: UP042  # the kind whose str() is its name
    BLUE = "blue"


@pytest.fixture(params=[False, True], ids=["wire", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The wire, and the ordinary cursors that HOLDPOINT_PLAIN_CURSORS puts in its place, whatever is set outside."""
    plain: bool = request.param
    monkeypatch.setitem(connection.settings_dict, "PLAIN_CURSORS", plain)
    return plain


@pytest.fixture
def bare(transactional_db: None) -> Iterator[psycopg.Connection[Any]]:
    """Django's own connection, outside a transaction."""
    connection.ensure_connection()
    yield connection.connection
    connection.close()


VALUES: tuple[tuple[str, Any, Any], ...] = (
    ("text", "ü '\"\\ {}", "ü '\"\\ {}"),
    ("text", "", ""),
    ("text", Colour.RED, "red"),
    ("text", Mixed.BLUE, "blue"),
    ("text", None, None),
    ("int", 7, 7),
    ("bool", True, True),
    ("bool", False, False),
    ("uuid", UUID(int=5), UUID(int=5)),
    ("uuid", str(UUID(int=5)), UUID(int=5)),
    ("timestamptz", AT, AT),
    ("bytea", b"\0\xff", b"\0\xff"),
    (
        "text[]",
        ["a,b", '"', "\\", "", "NULL", None, Colour.RED, Mixed.BLUE],
        ["a,b", '"', "\\", "", "NULL", None, "red", "blue"],
    ),
    ("text[]", [], []),
    ("uuid[]", [UUID(int=1), UUID(int=2)], [UUID(int=1), UUID(int=2)]),
)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("prepare", [True, False])
def test_every_kind_of_value_comes_out_as_it_went_in(db: None, prepare: bool) -> None:
    for kind, value, expected in VALUES:
        assert fetch(f"SELECT $1::{kind}", (value,), prepare=prepare) == [(expected,)], (kind, value)


@pytest.mark.unit
def test_what_the_protocol_cannot_hold_is_refused_and_not_cut_off() -> None:
    with pytest.raises(psycopg.DataError):
        ready(["a\0b"])
    with pytest.raises(psycopg.DataError):
        as_text(["a\0b"])
    with pytest.raises(TypeError, match="object"):
        ready([object()])


@pytest.mark.usefixtures("way")
def test_a_transaction_begins_with_its_first_statement_and_ends_as_ever(bare: Any) -> None:
    fetch("SELECT 1", ())
    assert bare.info.transaction_status == TransactionStatus.IDLE
    with transaction.atomic():
        fetch("CREATE TEMPORARY TABLE noted (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)", (), prepare=False)
        assert bare.info.transaction_status == TransactionStatus.INTRANS
        fetch("INSERT INTO noted VALUES ($1::int)", (1,))
    with transaction.atomic():
        fetch("INSERT INTO noted VALUES ($1::int)", (2,))
        transaction.set_rollback(True)
    with pytest.raises(IntegrityError), transaction.atomic():  # at the commit
        fetch("INSERT INTO noted VALUES ($1::int)", (1,))
    assert fetch("SELECT id FROM noted", ()) == [(1,)]
    assert bare.info.transaction_status == TransactionStatus.IDLE


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("inside", [True, False])
def test_the_statement_before_has_a_snapshot_of_its_own(bare: Any, inside: bool) -> None:
    """What commits while the first one waits is seen by the second: the gate needs nothing less."""
    wanted, row = 4711, uuid4()
    fetch("CREATE TABLE wire_seen (id uuid)", (), prepare=False)
    try:
        with psycopg.connect(bare.info.dsn) as other:
            other.execute("SELECT pg_advisory_xact_lock(%s)", [wanted])
            other.execute("INSERT INTO wire_seen VALUES (%s)", [row])
            with psycopg.connect(bare.info.dsn, autocommit=True) as watch:
                seen = _while_waiting(other, watch, wanted, inside)
        assert seen == [(row,)]
    finally:
        fetch("DROP TABLE wire_seen", (), prepare=False)


def _while_waiting(other: Any, watch: Any, wanted: int, inside: bool) -> Any:
    def release() -> None:
        while not watch.execute("SELECT 1 FROM pg_locks WHERE objid = %s AND NOT granted", [wanted]).fetchone():
            pass
        other.commit()

    thread = Thread(target=release)
    thread.start()
    first = f"SELECT pg_advisory_xact_lock_shared({wanted})"
    try:
        if not inside:
            return fetch("SELECT id FROM wire_seen", (), first=first)
        with transaction.atomic():
            return fetch("SELECT id FROM wire_seen", (), first=first)
    finally:
        thread.join()


@pytest.mark.usefixtures("way")
def test_the_gate_is_held_until_the_transaction_ends(bare: Any) -> None:
    with transaction.atomic():
        assert fetch(HELD, (), first=TAKE_SEND_LOCK) == [(1,)]
        assert fetch(HELD, ()) == [(1,)]
    assert fetch(HELD, ()) == [(0,)]
    assert fetch(HELD, (), first=TAKE_SEND_LOCK) == [(1,)], "also in the transaction that the two are by themselves"
    assert fetch(HELD, ()) == [(0,)]


@pytest.mark.usefixtures("way")
def test_after_an_error_the_transaction_is_broken_and_the_connection_is_not(bare: Any) -> None:
    for first in ("", TAKE_SEND_LOCK, "SELECT 1/0"):
        with pytest.raises(DataError), transaction.atomic():
            fetch("SELECT 1/$1::int", (0,), first=first)
        assert bare.pgconn.pipeline_status == PipelineStatus.OFF
        assert fetch("SELECT 7", ()) == [(7,)]
        assert connection.connection is bare


def test_a_connection_that_was_interrupted_half_way_is_not_used_again(
    bare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wire's own business: ordinary cursors leave it to psycopg."""
    monkeypatch.setitem(connection.settings_dict, "PLAIN_CURSORS", False)
    for first in ("", TAKE_SEND_LOCK):
        connection.ensure_connection()
        held = connection.connection
        fetch("SELECT 7", (), first=first)  # both are prepared now
        with pytest.raises(SystemExit), transaction.atomic():
            _interrupted(monkeypatch, type(held), first)
        assert held.closed
        assert fetch("SELECT 7", ()) == [(7,)]


def _interrupted(monkeypatch: pytest.MonkeyPatch, kind: Any, first: str) -> None:
    def stopped(connection: Any, gen: Any, *args: Any, **options: Any) -> Any:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(kind, "wait", stopped)
        fetch("SELECT 7", (), first=first)


@pytest.mark.usefixtures("way")
def test_a_server_that_ends_the_connection_is_an_operational_error(bare: Any) -> None:
    with pytest.raises(OperationalError):
        fetch("SELECT pg_terminate_backend(pg_backend_pid())", (), first=TAKE_SEND_LOCK)
    connection.close()
    assert fetch("SELECT 7", ()) == [(7,)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("counted", [True, False])
def test_a_connection_that_was_closed_inside_a_transaction_is_replaced_after_it(bare: Any, counted: bool) -> None:
    """As ORM queries do: Django keeps the mark of the broken transaction until a new connection is made."""
    with transaction.atomic():
        connection.close()
    connection.force_debug_cursor = counted
    try:
        assert fetch("SELECT 1", ()) == [(1,)]
    finally:
        connection.force_debug_cursor = False


def test_only_so_many_are_kept_prepared_and_the_oldest_unused_one_goes(bare: Any) -> None:
    wire = PostgresWire(bare)
    for number in range(MOST_PREPARED + 20):
        assert wire.fetch(f"SELECT {number}", ready(()), prepare=True, first="SELECT 'kept'") == [(number,)]
    names = wire.fetch(
        "SELECT name FROM pg_prepared_statements WHERE name LIKE '_holdpoint_%'", ready(()), prepare=False
    )
    assert len(names) == MOST_PREPARED
    assert ("_holdpoint_1",) in names
    assert ("_holdpoint_2",) not in names
