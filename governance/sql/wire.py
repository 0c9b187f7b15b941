"""Prepared statements straight on the connection's protocol: what a cursor does besides costs more than most of them.

Waiting, and with it what happens when the server falls silent or somebody interrupts, stays the connection's own."""

from collections import OrderedDict
from collections.abc import Generator, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg import errors, generators
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, TransactionStatus

Sent = bytes | None
TEXT, BINARY = 0, 1


class Ready(NamedTuple):
    """Parameters that are in the protocol's form already: each one's bytes, and whether that is its text or not."""

    values: list[Sent]
    formats: Sequence[int]


def ready(params: Sequence[Any]) -> Ready:
    """As text, whose type the statement says; what is shorter in its own form goes so."""
    values: list[Sent] = []
    formats: list[int] = []
    for value in params:
        kind = type(value)
        if kind is UUID:
            values.append(value.bytes)
            formats.append(BINARY)
        elif kind is bytes:
            values.append(value)
            formats.append(BINARY)
        else:
            values.append(None if value is None else as_text(value))
            formats.append(TEXT)
    return Ready(values, formats)


def as_text(value: Any) -> bytes:
    """An enumeration's member is its value."""
    written = value if isinstance(value, str) else _written(value)
    if "\0" in written:  # the protocol's text ends there
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return written.encode()


def _written(value: Any) -> str:
    match value:
        case Enum():
            written = str(value.value)
        case bool():
            written = "t" if value else "f"
        case datetime():
            written = value.isoformat()
        case list() | tuple():
            written = "{" + ",".join(map(_element, value)) + "}"
        case int() | UUID():
            written = str(value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be sent")
    return written


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    written = str.__str__(value) if isinstance(value, str) else _written(value)
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'


Rows = list[tuple[Any, ...]]
MOST_PREPARED = 100
IDLE, ACTIVE = TransactionStatus.IDLE, TransactionStatus.ACTIVE


class PostgresWire:
    """One per connection, and as long-lived: it remembers which statements the server has prepared."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._names: OrderedDict[str, bytes] = OrderedDict()
        self._made = 0
        self._reader = Transformer(connection)

    def fetch(self, sql: str, params: Ready, *, prepare: bool, first: str = "") -> Rows:
        """All rows. Begins the transaction when there is none and the connection wants one, in the same round trip.
        `first` goes before it, as a statement of its own with a snapshot of its own; its answer is not looked at."""
        with self.connection.lock:
            try:
                ahead = [self._name(one) for one in (self._begin(), first) if one]
                result = self._answer(ahead, self._name(sql) if prepare else sql.encode(), params, named=prepare)
            except BaseException:
                self._leave_nothing_behind()
                raise
            if result.status != ExecStatus.TUPLES_OK:
                return []
            self._reader.set_pgresult(result)
            return self._reader.load_rows(0, result.ntuples, tuple)

    def _answer(self, ahead: list[bytes], what: bytes, params: Ready, *, named: bool) -> Any:
        pgconn = self.connection.pgconn
        if ahead:
            pgconn.enter_pipeline_mode()
        for name in ahead:
            pgconn.send_query_prepared(name, None)
        if named:
            pgconn.send_query_prepared(what, params.values, params.formats)
        else:
            pgconn.send_query_params(what, params.values, param_formats=params.formats)
        if not ahead:
            return _good(self.connection.wait(generators.execute(pgconn)))
        pgconn.pipeline_sync()
        answers = self.connection.wait(_in_turn(pgconn, len(ahead) + 2))  # each one's, and the synchronization's
        pgconn.exit_pipeline_mode()
        for answer in answers[:-1]:
            result = _good(answer)
        return result

    def _begin(self) -> str:
        """What begins a transaction, when there is none and the connection wants one."""
        if self.connection.autocommit or self.connection.pgconn.transaction_status != IDLE:
            return ""
        return self.connection._get_tx_start_command().decode()

    def _name(self, sql: str) -> bytes:
        if sql in self._names:
            self._names.move_to_end(sql)
            return self._names[sql]
        if len(self._names) >= MOST_PREPARED:
            _, oldest = self._names.popitem(last=False)
            self._run("send_query", b"DEALLOCATE " + oldest)
        self._made += 1
        name = f"_holdpoint_{self._made}".encode()
        self._run("send_prepare", name, sql.encode())
        self._names[sql] = name
        return name

    def _run(self, what: str, *given: bytes) -> None:
        pgconn = self.connection.pgconn
        getattr(pgconn, what)(*given)
        _good(self.connection.wait(generators.execute(pgconn)))

    def _leave_nothing_behind(self) -> None:
        """What was interrupted half-way is at a place in the protocol that nobody knows: nothing more goes there."""
        pgconn = self.connection.pgconn
        if pgconn.transaction_status == ACTIVE or pgconn.pipeline_status:
            self.connection.close()


def _in_turn(pgconn: Any, count: int) -> Generator[Any, Any, list[Any]]:
    yield from generators.send(pgconn)
    found = []
    for _ in range(count):
        found.append((yield from generators.fetch_many(pgconn)))
    return found


def _good(answers: Sequence[Any]) -> Any:
    result = answers[0]
    if result.status == ExecStatus.FATAL_ERROR:
        raise errors.error_from_result(result)
    return result
