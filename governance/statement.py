"""Prepared statements, for the few queries that every request makes: PostgreSQL parses and plans them once per
connection, and nothing is quoted into them. They see the same transaction, errors and wrappers as any other query."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import RawCursor

Rows = list[tuple[Any, ...]]


def fetch(sql: str, params: Sequence[Any], *, prepare: bool = True) -> Rows:
    """All rows. Parameters stand in the SQL as `$1`, `$2`, …, with a cast where PostgreSQL cannot tell the type."""
    own = connections[DEFAULT_DB_ALIAS]
    own.validate_no_broken_transaction()
    own.ensure_connection()
    execute: Callable[..., Rows] = partial(_execute, own, prepare)
    for wrapper in reversed(own.execute_wrappers):
        execute = partial(wrapper, execute)
    if not own.queries_logged:
        return execute(sql, params, False, {"connection": own, "cursor": None})
    started = time.monotonic()
    try:
        return execute(sql, params, False, {"connection": own, "cursor": None})
    finally:
        own.queries_log.append({"sql": sql, "time": f"{time.monotonic() - started:.3f}"})


def _execute(
    own: BaseDatabaseWrapper, prepare: bool, sql: str, params: Sequence[Any], many: bool, context: Any
) -> Rows:
    with own.wrap_database_errors:
        cursor = _cursor(own)
        cursor.execute(sql, params, prepare=prepare)  # type: ignore[call-overload]  # SQL of our own, built once
        return cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []


def _cursor(own: Any) -> "RawCursor[tuple[Any, ...]]":
    """One per connection, kept with it: making one costs as much as a small query."""
    kept = getattr(own, "_holdpoint_cursor", None)
    if kept is None or kept.connection is not own.connection:
        kept = own._holdpoint_cursor = RawCursor(own.connection)
    return kept
