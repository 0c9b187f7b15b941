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

MOST_PREPARED = 12  # rows; a longer list comes seldom with the same length again
Convert = Callable[[Any], Any]
Shape = tuple[tuple[type[models.Model], int], ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """Common table expressions, the last of them `gate` with one row: its column `go` says whether anything is
    inserted, `answer` is what the statement returns. Its parameters are the first ones of the statement."""

    sql: str
    answer: str
    width: int


def insert_together(
    *groups: Sequence[models.Model], gate: Gate | None = None, parameters: Sequence[Any] = (), alone: bool = False
) -> tuple[Any, ...]:
    """Inserts all rows of all groups (one model per group) as one data-modifying statement, or none of them.

    Foreign keys between the groups hold: they are checked at commit. Primary keys must be set by the caller. Outside a
    transaction the statement is one of its own; a ledger entry is then inserted with what it describes, or with the
    word that it stands `alone`.
    """
    filled = [rows for rows in groups if rows]
    if not filled:
        return ()
    if not alone and isinstance(filled[0][0], LedgerEntry) and len(filled) == 1 and not connection.in_atomic_block:
        raise LedgerOutsideTransaction(filled[0][0].action)
    shape = tuple((type(rows[0]), len(rows)) for rows in filled)
    values = chain(parameters, *(_values(row) for rows in filled for row in rows))
    few = sum(len(rows) for rows in filled) <= MOST_PREPARED
    answer = fetch(_statement(shape, gate), list(values), prepare=few)
    for rows in filled:
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias
    return answer[0] if answer else ()


@cache
def _statement(shape: Shape, gate: Gate | None) -> str:
    """The same for every set of rows of this shape, so made once."""
    parts, number = [], gate.width if gate else 0
    for model, count in shape:
        parts.append(_insert(model, count, number, gate))
        number += count * len(_columns(model).names)
    if gate is None:
        *earlier, last = parts
        names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(earlier))
        return f"WITH {names} {last}" if names else last
    names = ", ".join(f"i{index} AS ({sql})" for index, sql in enumerate(parts))
    return f"WITH {gate.sql}, {names} SELECT {gate.answer} FROM gate"  # noqa: S608


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
