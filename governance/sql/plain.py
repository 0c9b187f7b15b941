"""Sends the statements of `governance.sql.statements` with psycopg's ordinary cursors: slower than
`governance.sql.wire`, but without psycopg's private names. `HOLDPOINT_PLAIN_CURSORS` switches to it, for a version of
psycopg that the wire does not work with."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import tuple_row

from governance.sql.wire import BINARY, Ready, Rows


class _Text(bytes):
    """A parameter in PostgreSQL's text form."""


class _Binary(bytes):
    """A parameter in PostgreSQL's binary form."""


class _AsItIs(Dumper):
    """Passes bytes on unchanged."""

    # No type: the statement decides it, as on the wire. With psycopg's own type for bytes, `$1::uuid` would be a cast
    # from bytea.
    oid = 0

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


class _BinaryAsItIs(_AsItIs):
    format = Format.BINARY


def plain_fetch(connection: psycopg.Connection[Any], sql: str, params: Ready, *, prepare: bool, first: str) -> Rows:
    """Like `PostgresWire.fetch`, with one round trip for each statement."""
    # RawCursor takes `$1`, as the wire does; psycopg's other cursors take `%s`.
    with _together(connection, first), psycopg.RawCursor(connection, row_factory=tuple_row) as cursor:
        cursor.adapters.register_dumper(_Text, _AsItIs)
        cursor.adapters.register_dumper(_Binary, _BinaryAsItIs)
        if first:
            cursor.execute(first.encode(), prepare=True)
        cursor.execute(sql.encode(), _marked(params), prepare=prepare)
        return cursor.fetchall() if cursor.description is not None else []


@contextmanager
def _together(connection: psycopg.Connection[Any], first: str) -> Iterator[None]:
    """Outside a transaction, one transaction around both statements."""
    # `first` takes a lock until the end of its transaction: without this one, it would be released before `sql` runs.
    if first and connection.autocommit:
        with connection.transaction():
            yield
    else:
        yield


def _marked(params: Ready) -> list[bytes | None]:
    return [
        None if value is None else _Binary(value) if kind == BINARY else _Text(value)
        for value, kind in zip(params.values, params.formats, strict=True)
    ]
