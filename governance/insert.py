"""Several tables' rows in one statement. Round trips cost more than anything else on the way of a request."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from governance.errors import LedgerOutsideTransaction
from governance.models import LedgerEntry
from governance.statement import fetch

MOST_PREPARED = 40  # rows; a longer list comes seldom with the same length again
Convert = Callable[[Any], Any]
Shape = tuple[tuple[type[models.Model], int], ...]
Removed = tuple[tuple[type[models.Model], str], ...]
Changed = tuple[tuple[type[models.Model], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """Common table expressions, the last of them `gate` with one row: its column `go` says whether anything is
    inserted, `answer` is what the statement returns. Its parameters are the first ones of the statement."""

    sql: str
    answer: str
    width: int


@dataclass(frozen=True, slots=True)
class Change:
    """New values of a stored row, which the caller has locked: what `save(update_fields=…)` does, without its trip."""

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
    changes: Sequence[Change] = (),
    removals: Sequence[Removal] = (),
    gate: Gate | None = None,
    parameters: Sequence[Any] = (),
    alone: bool = False,
) -> tuple[Any, ...]:
    """Inserts all rows of all groups (one model per group) as one data-modifying statement, or none of them.

    `changes` and `removals` are made by it too, at most one of a row, and never behind a gate.
    Foreign keys between the groups hold: they are checked at commit. Primary keys must be set by the caller. Outside a
    transaction the statement is one of its own; a ledger entry is then inserted with what it describes, or with the
    word that it stands `alone`.
    """
    filled = [rows for rows in groups if rows]
    if not filled and not changes and not removals:
        return ()
    if (
        filled
        and not alone
        and isinstance(filled[0][0], LedgerEntry)
        and len(filled) == 1
        and not connection.in_atomic_block
    ):
        raise LedgerOutsideTransaction(filled[0][0].action)
    shape = tuple((type(rows[0]), len(rows)) for rows in filled)
    changed = tuple((type(change.row), change.fields) for change in changes)
    removed = tuple((removal.model, removal.column) for removal in removals)
    values = chain(
        parameters,
        *(_new_values(change) for change in changes),
        (removal.value for removal in removals),
        *(_values(row) for rows in filled for row in rows),
    )
    few = len(changes) + sum(len(rows) for rows in filled) <= MOST_PREPARED
    answer = fetch(_statement(shape, gate, changed, removed), list(values), prepare=few)
    for rows in filled:
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias
    return answer[0] if answer else ()


@cache
def _statement(shape: Shape, gate: Gate | None, changed: Changed, removed: Removed) -> str:
    """The same for every set of rows of this shape, so made once."""
    parts, number = [], gate.width if gate else 0
    if gate and (changed or removed):
        raise ValueError("a change stands behind its row's lock, not behind a gate")
    for model, fields in changed:
        parts.append(_update(model, fields, number))
        number += len(fields) + 1
    for model, column in removed:
        number += 1
        quoted = connection.ops.quote_name(column)
        parts.append(f"DELETE FROM {_columns(model).table} WHERE {quoted} = ${number}")  # noqa: S608
    for model, count in shape:
        parts.append(_insert(model, count, number, gate))
        number += count * len(_columns(model).names)
    if gate is None:
        *earlier, last = parts
        names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(earlier))
        return f"WITH {names} {last}" if names else last
    names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(parts))
    return f"WITH {gate.sql}, {names} SELECT {gate.answer} FROM gate"  # noqa: S608


def _update(model: type[models.Model], fields: tuple[str, ...], number: int) -> str:
    columns = _columns(model)
    places = [columns.names.index(name) for name in fields]
    listed = columns.listed.split(", ")
    new = [f"{listed[place]} = ${number + at}::{columns.types[place]}" for at, place in enumerate(places, start=2)]
    return f"UPDATE {columns.table} SET {', '.join(new)} WHERE id = ${number + 1}"  # noqa: S608


def _new_values(change: Change) -> list[Any]:
    columns, values = _columns(type(change.row)), change.row.__dict__
    converts = dict(zip(columns.names, columns.converts, strict=True))
    return [change.row.pk, *(converts[name](values[name]) for name in change.fields)]


def _insert(model: type[models.Model], count: int, number: int, gate: Gate | None) -> str:
    columns, rows = _columns(model), []
    for _ in range(count):
        places = [f"${number + place}::{kind}" for place, kind in enumerate(columns.types, start=1)]
        rows.append(f"({', '.join(places)})")
        number += len(places)
    values = ", ".join(rows)
    source = f"SELECT v.* FROM gate, (VALUES {values}) AS v WHERE gate.go" if gate else f"VALUES {values}"  # noqa: S608
    return f"INSERT INTO {columns.table} ({columns.listed}) {source}"


def _values(row: models.Model) -> list[Any]:
    columns = _columns(type(row))
    for field in columns.filled_in:
        field.pre_save(row, True)
    values = columns.pick(row.__dict__)
    return [convert(value) for convert, value in zip(columns.converts, values, strict=True)]


@dataclass(frozen=True, slots=True)
class _Columns:
    table: str
    listed: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    converts: tuple[Convert, ...]
    pick: Callable[[dict[str, Any]], tuple[Any, ...]]
    filled_in: tuple[Any, ...]


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
        pick=itemgetter(*names),
        filled_in=tuple(field for field in fields if getattr(field, "auto_now_add", False)),
    )


def _type(field: Any) -> str:
    """Text without its length: a cast to a length would cut off what the column refuses."""
    kind = str(field.db_type(connection))
    return ("text[]" if isinstance(field, ArrayField) else "text") if kind.startswith("varchar") else kind


def _convert(field: Any) -> Convert:
    """To what psycopg sends with the same type for every value: the type is part of a prepared statement's name.
    Texts may be members of an enumeration, which psycopg would send by name."""
    kind = field.target_field if field.is_relation else field
    if isinstance(kind, models.JSONField):
        return partial(_json, encoder=kind.encoder)
    if isinstance(kind, models.BinaryField | models.BooleanField | ArrayField):
        return _as_it_is
    if isinstance(kind, models.CharField | models.TextField | models.IntegerField):
        return _text_or_nothing if field.null else str
    return _text_or_nothing if field.null else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _text_or_nothing(value: Any) -> str | None:
    return None if value is None else str(value)


def _json(value: Any, *, encoder: type[json.JSONEncoder] | None) -> str | None:
    return None if value is None else json.dumps(value, cls=encoder)
