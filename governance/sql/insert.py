"""Writes rows of several tables in one statement: `insert_together`, and `Pending`, which collects rows until then.

Round trips are the largest cost of a request. Reads, and how a statement is sent, are in `statements` and `wire`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models import Model

from governance.ledger.errors import LedgerOutsideTransaction
from governance.ledger.rules.entry import json_writer
from governance.sql.statements import fetch
from governance.sql.wire import BINARY, TEXT, Ready, Sent, as_text, ready

# Rows. The number of rows is part of the statement's text, and a longer list rarely has the same length again:
# preparing it would push out statements that are used often.
MOST_PREPARED = 40
Convert = Callable[[Any], Sent]
Shape = tuple[tuple[type[models.Model], int], ...]
Removed = tuple[tuple[type[models.Model], str], ...]
Changed = tuple[tuple[type[models.Model], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class InsertCondition:
    """An admit condition: common table expressions, the last of which is named `gate` and has one row. Its column `go`
    says whether anything is inserted; `answer` is what the statement returns. Its `width` parameters come first."""

    sql: str
    answer: str
    width: int


@dataclass(frozen=True, slots=True)
class RowChange:
    """New values of a stored row that the caller has locked. Like `save(update_fields=…)`, without its round trip."""

    row: models.Model
    fields: tuple[str, ...]  # as columns are read: `contract_id`


@dataclass(frozen=True, slots=True)
class Removal:
    """All rows whose column has this value."""

    model: type[models.Model]
    column: str
    value: Any


def insert_together(
    *groups: Sequence[models.Model],
    changes: Sequence[RowChange] = (),
    removals: Sequence[Removal] = (),
    condition: InsertCondition | None = None,
    parameters: Sequence[Any] = (),
    alone: bool = False,
) -> tuple[Any, ...]:
    """Insert all rows of all groups (one model per group) in one statement, or none of them.

    The statement also makes `changes` and `removals`: at most one per row, and none together with a condition. The
    caller sets the primary keys. Outside a transaction the statement is its own transaction. A ledger entry must then
    come with the rows that it describes, unless the caller says that it stands `alone`.
    """
    filled = [_prepared(rows) for rows in groups if rows]
    if not filled and not changes and not removals:
        return ()
    # An entry in a transaction of its own would stay when what it describes is rolled back.
    if (
        filled
        and not alone
        and getattr(filled[0][0], "ONLY_IN_A_TRANSACTION", False)
        and len(filled) == 1
        and not connection.in_atomic_block
    ):
        raise LedgerOutsideTransaction(type(filled[0][0]).__name__)
    shape = tuple((type(rows[0]), len(rows)) for rows in filled)
    changed = tuple((type(change.row), change.fields) for change in changes)
    removed = tuple((removal.model, removal.column) for removal in removals)
    given, gone = ready(parameters), ready([removal.value for removal in removals])
    # The order of `_statement`: condition, changes, removals, rows. Placeholders are numbered, so another order would
    # write values into other columns.
    values = given.values
    for change in changes:
        values += _new_values(change)
    values += gone.values
    for rows in filled:
        for row in rows:
            values += _values(row)
            row._state.db = DEFAULT_DB_ALIAS
    formats = (*given.formats, *_formats(changed), *gone.formats, *_formats_of_rows(shape))
    few = len(changes) + sum(len(rows) for rows in filled) <= MOST_PREPARED
    answer = fetch(_statement(shape, condition, changed, removed), Ready(values, formats), prepare=few)
    # Only now: rows of a statement that failed still count as new.
    for rows in filled:
        for row in rows:
            row._state.adding = False
    return answer[0] if answer else ()


def _prepared(rows: Sequence[models.Model]) -> Sequence[models.Model]:
    """The rows as their model wants them written: ledger entries of one subject become one."""
    prepare = getattr(type(rows[0]), "before_insert", None)
    return prepare(rows) if prepare else rows


@cache
def _formats(changed: Changed) -> tuple[int, ...]:
    return tuple(form for model, fields in changed for form in (BINARY, *_picked(model, fields).formats))


@cache
def _formats_of_rows(shape: Shape) -> tuple[int, ...]:
    return tuple(form for model, count in shape for form in _columns(model).formats * count)


@cache
def _statement(shape: Shape, condition: InsertCondition | None, changed: Changed, removed: Removed) -> str:
    """The SQL is the same for all sets of rows of this shape, so it is put together once."""
    # The parts are common table expressions of one statement. They share a snapshot and do not see each other's rows;
    # foreign keys between them hold because Django declares them DEFERRABLE INITIALLY DEFERRED (checked at commit).
    parts, number = [], condition.width if condition else 0
    if condition and (changed or removed):
        raise ValueError("a change stands behind its row's lock, not behind a condition")
    for model, fields in changed:
        parts.append(_update(model, fields, number))
        number += len(fields) + 1
    for model, column in removed:
        number += 1
        quoted = connection.ops.quote_name(column)
        parts.append(f"DELETE FROM {_columns(model).table} WHERE {quoted} = ${number}")  # noqa: S608
    for model, count in shape:
        parts.append(_insert(model, count, number, condition))
        number += count * len(_columns(model).names)
    if condition is None:
        *earlier, last = parts
        names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(earlier))
        return f"WITH {names} {last}" if names else last
    names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(parts))
    return f"WITH {condition.sql}, {names} SELECT {condition.answer} FROM gate"  # noqa: S608


def _update(model: type[models.Model], fields: tuple[str, ...], number: int) -> str:
    columns = _columns(model)
    places = [columns.names.index(name) for name in fields]
    listed = columns.listed.split(", ")
    new = [f"{listed[place]} = ${number + at}::{columns.types[place]}" for at, place in enumerate(places, start=2)]
    return f"UPDATE {columns.table} SET {', '.join(new)} WHERE id = ${number + 1}"  # noqa: S608


def _new_values(change: RowChange) -> list[Sent]:
    picked, values = _picked(type(change.row), change.fields), change.row.__dict__
    return [change.row.pk.bytes, *[convert(values[name]) for name, convert in picked.converts]]


@dataclass(frozen=True, slots=True)
class _Picked:
    converts: tuple[tuple[str, Convert], ...]
    formats: tuple[int, ...]


@cache
def _picked(model: type[models.Model], fields: tuple[str, ...]) -> _Picked:
    columns = _columns(model)
    places = [columns.names.index(name) for name in fields]
    return _Picked(
        converts=tuple((columns.names[place], columns.converts[place]) for place in places),
        formats=tuple(columns.formats[place] for place in places),
    )


def _insert(model: type[models.Model], count: int, number: int, condition: InsertCondition | None) -> str:
    columns, rows = _columns(model), []
    for _ in range(count):
        places = [f"${number + place}::{kind}" for place, kind in enumerate(columns.types, start=1)]
        rows.append(f"({', '.join(places)})")
        number += len(places)
    values = ", ".join(rows)
    source = f"SELECT v.* FROM gate, (VALUES {values}) AS v WHERE gate.go" if condition else f"VALUES {values}"  # noqa: S608
    return f"INSERT INTO {columns.table} ({columns.listed}) {source}"


def _values(row: models.Model) -> list[Sent]:
    columns = _columns(type(row))
    # `Model.save` would fill `auto_now_add` in; it is not called here.
    for filled_in in columns.filled_in:
        filled_in.pre_save(row, True)
    values = columns.pick(row.__dict__)
    return [convert(value) for convert, value in zip(columns.converts, values, strict=True)]


@dataclass(frozen=True, slots=True)
class _Columns:
    table: str
    listed: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    converts: tuple[Convert, ...]
    formats: tuple[int, ...]
    pick: Callable[[dict[str, Any]], tuple[Any, ...]]
    filled_in: tuple[Any, ...]


# Cached per model: what Django's `_meta` says is the same for every row, and reading it again costs processor time.
@cache
def _columns(model: type[models.Model]) -> _Columns:
    fields = model._meta.local_concrete_fields
    names = tuple(field.attname for field in fields)
    quote = connection.ops.quote_name
    return _Columns(
        table=quote(model._meta.db_table),
        listed=", ".join(quote(str(field.column)) for field in fields),
        names=names,
        types=tuple(_type(field) for field in fields),
        converts=tuple(_convert(field) for field in fields),
        formats=tuple(BINARY if _convert(field) in (_uuid, _binary) else TEXT for field in fields),
        pick=itemgetter(*names),
        filled_in=tuple(field for field in fields if getattr(field, "auto_now_add", False)),
    )


def _type(field: Any) -> str:
    """The type that a placeholder is cast to."""
    # `text` instead of `varchar(n)`: a cast to a length cuts a longer text silently, the column itself refuses it.
    kind = str(field.db_type(connection))
    return ("text[]" if isinstance(field, ArrayField) else "text") if kind.startswith("varchar") else kind


def _convert(field: Any) -> Convert:
    """The function that turns a value of this field into bytes. It is chosen once per column, not once per value."""
    kind = field.target_field if field.is_relation else field
    for types, convert in CONVERTS:
        if isinstance(kind, types):
            return convert
    return _text


def _uuid(value: Any) -> Sent:
    if type(value) is UUID:
        return value.bytes
    return None if value is None else UUID(str(value)).bytes


def _binary(value: Any) -> Sent:
    return None if value is None else bytes(value)


def _text(value: Any) -> Sent:
    return None if value is None else as_text(value)


def _char(value: Any) -> Sent:
    """Any value as its text, for example an id in a text column."""
    if type(value) is str and "\0" not in value:
        return value.encode()
    return None if value is None else as_text(value if isinstance(value, str) else str(value))


def _boolean(value: Any) -> Sent:
    return None if value is None else b"t" if value else b"f"


# A transaction writes the same moment dozens of times; its text is made once.
_latest: tuple[Any, bytes] = (None, b"")


def _time(value: Any) -> Sent:
    # Replaced as a whole: with two variables, one thread could combine its moment with another thread's text.
    global _latest
    if value is None:
        return None
    latest = _latest
    if latest[0] is not value:
        latest = _latest = (value, value.isoformat().encode())
    return latest[1]


def _json(value: Any) -> Sent:
    return None if value is None else _encode(value).encode()


_encode = json_writer()
# The first match counts. A field class that is not here goes through `_text`.
CONVERTS: tuple[tuple[Any, Convert], ...] = (
    (models.JSONField, _json),
    (models.BinaryField, _binary),
    (models.UUIDField, _uuid),
    (models.BooleanField, _boolean),
    (models.DateTimeField, _time),
    ((models.CharField, models.TextField, models.IntegerField), _char),
)


@dataclass(slots=True)
class Pending:
    """Rows, changes and removals of one transaction. The code that creates it also writes it, in one statement, which
    fails as a whole. Until then no query sees any of it."""

    _new: dict[type[Model], list[Model]] = field(default_factory=dict)
    _changes: dict[tuple[type[Model], Any], RowChange] = field(default_factory=dict)
    _removals: list[Removal] = field(default_factory=list)

    def add(self, *rows: Model) -> None:
        for row in rows:
            self._new.setdefault(type(row), []).append(row)

    def add_groups(self, groups: Iterable[Iterable[Model]]) -> None:
        for group in groups:
            self.add(*group)

    def change(self, row: Model, fields: tuple[str, ...]) -> None:
        """Note that these fields of a stored row are new. A row that waits for its insert needs no note: it is inserted
        with the values that it has when `write` is called."""
        if not self.holds(row):
            # One change per row: if one statement updates a row twice, PostgreSQL makes only one of the updates.
            earlier = self._changes.get((type(row), row.pk))
            more = tuple(name for name in fields if not earlier or name not in earlier.fields)
            self._changes[type(row), row.pk] = RowChange(row, (*earlier.fields, *more) if earlier else fields)

    def remove(self, model: type[Model], column: str, value: Any) -> None:
        self._removals.append(Removal(model, column, value))

    def holds(self, row: Model) -> bool:
        # By identity: two objects with the same key are equal for Django, but only one of them is written.
        return any(one is row for one in self._new.get(type(row), ()))

    def write(self) -> None:
        insert_together(*self._new.values(), changes=[*self._changes.values()], removals=self._removals)
        self._new, self._changes, self._removals = {}, {}, []
