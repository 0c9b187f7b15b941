"""Prepared statements for the queries that every request makes, and model rows without `Model.__init__`.

PostgreSQL parses a prepared statement once per connection, and values are never put into its text. Transactions, errors
and wrappers are those of Django's connection. `wire` sends them, or `plain` with HOLDPOINT_PLAIN_CURSORS."""

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
    """All rows. Placeholders are `$1`, `$2`, …, with a cast where PostgreSQL cannot infer the type.

    `first` is a statement that runs before it, in the same round trip and with its own snapshot. Its answer is ignored.
    """
    own = connections[DEFAULT_DB_ALIAS]
    # Tests that count queries, and traces, must see these statements too: they go one by one through the wrappers.
    if own.execute_wrappers or own.queries_logged:
        if first:
            _watched(own, first, (), True)
        return _watched(own, sql, params, prepare)
    # In this order: after a connection was lost inside a transaction, Django keeps the mark of the broken transaction
    # until a new connection is made. The other way round, the thread would refuse every statement.
    own.ensure_connection()
    own.validate_no_broken_transaction()
    # psycopg's errors become Django's: callers catch `IntegrityError` of `django.db`.
    with own.wrap_database_errors:
        return _sent(own, sql, params, prepare, first)


def _sent(own: Any, sql: str, params: Sequence[Any] | Ready, prepare: bool, first: str = "") -> Rows:
    """Over the wire, or with ordinary cursors if the database's settings say so."""
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
    """The wire of this connection."""
    # One per connection: prepared statements belong to the server's session. After a reconnect their names are unknown.
    kept = getattr(own, "_holdpoint_wire", None)
    if kept is None or kept.connection is not own.connection:
        kept = own._holdpoint_wire = PostgresWire(own.connection)
    return kept


M = TypeVar("M", bound=Model)


def stored_row(model: type[M], names: Iterable[str], values: Sequence[Any]) -> M | None:
    """A model row from the columns of a query. Fields that are not in `names` are deferred: reading one queries the
    database. None for the empty side of a LEFT JOIN: its first column is NULL."""
    if values[0] is None:
        return None
    row = _bare(model)
    row.__dict__.update(zip(names, values, strict=True))
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS
    return row


def new_row(model: type[M], **values: Any) -> M:
    """An unsaved row with the constant defaults of its fields. Names are those of columns (`organization_id`). The
    caller must give every field whose default is a function (an id, a list)."""
    row = _bare(model)
    row.__dict__.update(_defaults(model))
    row.__dict__.update(values)
    return row


def _bare(model: type[M]) -> M:
    # `Model.__init__` visits every field and sends two signals, for each row. On the fast paths that is too slow.
    row = model.__new__(model)
    row._state = ModelState()
    return row


@cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    found = {}
    for field in model._meta.local_concrete_fields:
        if field.default is NOT_PROVIDED:
            found[field.attname] = None if field.null else ""
        # A function's result must not be shared: two rows would have the same id or the same list.
        elif not callable(field.default):
            found[field.attname] = field.default
    return found
