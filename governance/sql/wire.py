"""Sends prepared statements with libpq's own calls, and writes parameters in the protocol's form. psycopg's cursors
look up every time how to write each parameter: a quarter of an event's processor time in the client (DECISIONS.md).

Waiting stays with the connection, and with it the handling of a silent server and of an interruption."""

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
    """Parameters in the protocol's form: the bytes of each, and whether they are text or binary."""

    values: list[Sent]
    formats: Sequence[int]


def ready(params: Sequence[Any]) -> Ready:
    """Parameters as text, whose type the statement says; ids and bytes in binary, which is shorter."""
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
    """PostgreSQL's text form of a value. A member of an enumeration is written as its value."""
    written = value if isinstance(value, str) else _written(value)
    # The protocol's text ends at a NUL: without this check the rest would be cut off silently.
    if "\0" in written:
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
    # `str.__str__`: `str()` of an enumeration's member may be its name instead of its value.
    written = str.__str__(value) if isinstance(value, str) else _written(value)
    # Always in quotes: unquoted, the text `NULL` would be read as null, and a comma as the end of the element.
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'


Rows = list[tuple[Any, ...]]
# Statements per connection. Each takes memory of its server process; beyond this the least recently used one goes.
MOST_PREPARED = 100
IDLE, ACTIVE = TransactionStatus.IDLE, TransactionStatus.ACTIVE


class PostgresWire:
    """One per connection, for as long as it lives: it remembers which statements the server has prepared."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._names: OrderedDict[str, bytes] = OrderedDict()
        self._made = 0
        self._reader = Transformer(connection)

    def fetch(self, sql: str, params: Ready, *, prepare: bool, first: str = "") -> Rows:
        """All rows. If the connection needs a transaction and has none, BEGIN goes in the same round trip. `first` is
        sent before it, as a separate statement with its own snapshot; its answer is ignored."""
        # psycopg's cursors take this lock too; without it two threads could mix their answers.
        with self.connection.lock:
            try:
                # Names first: preparing a statement is an exchange of its own and must be over before pipeline mode.
                ahead = [self._name(one) for one in (self._begin(), first) if one]
                result = self._answer(ahead, self._name(sql) if prepare else sql.encode(), params, named=prepare)
            # Also for KeyboardInterrupt and SystemExit: they too can arrive between a question and its answer.
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
        # One answer per statement, and one for the synchronization. All are read before an error is raised: an unread
        # answer would be taken for that of the next statement.
        answers = self.connection.wait(_in_turn(pgconn, len(ahead) + 2))
        pgconn.exit_pipeline_mode()
        # In order: the first error is the cause, the statements after it only say that they were not run.
        found = [_good(answer) for answer in answers]
        return found[-2]

    def _begin(self) -> str:
        """The statement that begins a transaction, or nothing if none is needed."""
        if self.connection.autocommit or self.connection.pgconn.transaction_status != IDLE:
            return ""
        # A private name of psycopg: it knows isolation level and access mode. `plain` is the way without it.
        return self.connection._get_tx_start_command().decode()

    def _name(self, sql: str) -> bytes:
        if sql in self._names:
            self._names.move_to_end(sql)
            return self._names[sql]
        if len(self._names) >= MOST_PREPARED:
            _, oldest = self._names.popitem(last=False)
            # In SQL: not every libpq has a call for it.
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
        """Close a connection that was interrupted in the middle of an exchange. It may still deliver the old answer,
        and the next statement would take it for its own."""
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
    """The statement's own answer. An error may follow it: outside a transaction the commit comes after that answer, and
    when it fails (a deferred constraint, a server that dies) nothing was written. Found by `make chaos`."""
    for result in answers:
        if result.status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result)
    return answers[0]
