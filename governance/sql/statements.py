"""Prepared statements, for the few queries that every request makes: PostgreSQL parses and plans them once per
connection, and nothing is quoted into them. They see the same transaction, errors and wrappers as any other query.

With HOLDPOINT_PLAIN_CURSORS they go by psycopg's ordinary cursors and are parsed each time."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import NOT_PROVIDED, Model
from django.db.models.base import ModelState

from governance.sql.plain import plain_fetch
from governance.sql.wire import PostgresWire, Ready, Rows, ready


def fetch(sql: str, params: Sequence[Any] | Ready, *, prepare: bool = True, first: str = "") -> Rows:
    """All rows. Parameters stand in the SQL as `$1`, `$2`, …, with a cast where PostgreSQL cannot tell the type.

    `first` is a statement before it, with a snapshot of its own and in the same round trip; its answer is passed over.
    It makes no trip of its own, unless somebody counts or watches statements."""
    own = connections[DEFAULT_DB_ALIAS]
    if own.execute_wrappers or own.queries_logged:
        if first:
            _watched(own, first, (), True)
        return _watched(own, sql, params, prepare)
    own.ensure_connection()  # first: a new connection is in no transaction, whatever the last one was lost in
    own.validate_no_broken_transaction()
    with own.wrap_database_errors:
        return _sent(own, sql, params, prepare, first)


def _sent(own: Any, sql: str, params: Sequence[Any] | Ready, prepare: bool, first: str = "") -> Rows:
    """By the wire, or by ordinary cursors where the database's settings say so."""
    if own.settings_dict.get("PLAIN_CURSORS"):
        return plain_fetch(own.connection, sql, _ready(params), prepare=prepare, first=first)
    return _wire(own).fetch(sql, _ready(params), prepare=prepare, first=first)


def _ready(params: Sequence[Any] | Ready) -> Ready:
    return params if isinstance(params, Ready) else ready(params)


def _watched(own: BaseDatabaseWrapper, sql: str, params: Sequence[Any] | Ready, prepare: bool) -> Rows:
    own.ensure_connection()
    own.validate_no_broken_transaction()
    execute: Callable[..., Rows] = partial(_execute, own, prepare)
    for wrapper in reversed(own.execute_wrappers):
        execute = partial(wrapper, execute)
    started = time.monotonic()
    try:
        return execute(sql, params, False, {"connection": own, "cursor": None})
    finally:
        if own.queries_logged:
            own.queries_log.append({"sql": sql, "time": f"{time.monotonic() - started:.3f}"})


def _execute(
    own: BaseDatabaseWrapper, prepare: bool, sql: str, params: Sequence[Any] | Ready, many: bool, context: Any
) -> Rows:
    with own.wrap_database_errors:
        return _sent(own, sql, params, prepare)


def _wire(own: Any) -> PostgresWire:
    """Kept with the connection, for it knows what is prepared there."""
    kept = getattr(own, "_holdpoint_wire", None)
    if kept is None or kept.connection is not own.connection:
        kept = own._holdpoint_wire = PostgresWire(own.connection)
    return kept


M = TypeVar("M", bound=Model)


def stored_row(model: type[M], names: Iterable[str], values: Sequence[Any]) -> M | None:
    """From columns that a query gave. A field that is not among `names` is deferred: touching it asks the database.
    None for the empty side of a LEFT JOIN, whose first column is empty."""
    if values[0] is None:
        return None
    row = _bare(model)
    row.__dict__.update(zip(names, values, strict=True))
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS
    return row


def new_row(model: type[M], **values: Any) -> M:
    """Unsaved, with the plain defaults of its fields. By column names (`organization_id`); what has a default that is
    made anew for every row (an id, a list) must be given."""
    row = _bare(model)
    row.__dict__.update(_defaults(model))
    row.__dict__.update(values)
    return row


def _bare(model: type[M]) -> M:
    row = model.__new__(model)
    row._state = ModelState()
    return row


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    found = {}
    for field in model._meta.local_concrete_fields:
        if field.default is NOT_PROVIDED:
            found[field.attname] = None if field.null else ""
        elif not callable(field.default):
            found[field.attname] = field.default
    return found
