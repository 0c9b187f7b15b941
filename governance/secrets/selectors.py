"""Reads how many sealed texts there are under which SECRET_KEY, and the next ones to seal again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection
from psycopg import sql

from governance.outside.secret_box import SealedColumn, known_prefixes, sealed_columns


@dataclass(frozen=True, slots=True)
class SealedText:
    """One sealed text: the row's key and what it holds now."""

    row: Any
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How many texts each key sealed. `former` also counts those that name no key, which are older than that form;
    `unknown` ones name a key that this process does not have."""

    current: int = 0
    former: int = 0
    unknown: int = 0

    def __add__(self, other: "Standing") -> "Standing":
        return Standing(self.current + other.current, self.former + other.former, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class ColumnSql:
    """The parts of a statement on one column. Names come from our own registry, never from a caller."""

    table: sql.Identifier
    key: sql.Identifier
    column: sql.Identifier
    text: sql.Composable


def column_sql(column: SealedColumn) -> ColumnSql:
    meta = apps.get_model(column.model)._meta
    field = sql.Identifier(meta.get_field(column.column).column)  # type: ignore[union-attr]
    text: sql.Composable = field
    if column.json_key:
        text = sql.SQL("({} ->> {})").format(field, sql.Literal(column.json_key))
    return ColumnSql(sql.Identifier(meta.db_table), sql.Identifier(meta.pk.column), field, text)


def secrets_standing(*, columns: Iterable[SealedColumn] | None = None) -> Standing:
    """Over all registered columns, or these."""
    return sum((_standing(one) for one in (sealed_columns() if columns is None else columns)), Standing())


def _standing(column: SealedColumn) -> Standing:
    parts = column_sql(column)
    current, *former = known_prefixes()
    counted = sql.SQL(
        "SELECT count(*) FILTER (WHERE starts_with({text}, %s)),"
        " count(*) FILTER (WHERE {text} NOT LIKE 's1.%%' OR left({text}, length(%s)) = ANY(%s)), count(*)"
        " FROM {table} WHERE {text} <> ''"
    ).format(text=parts.text, table=parts.table)
    with connection.cursor() as cursor:
        cursor.execute(counted, [current, current, former])
        now, old, total = cursor.fetchone()
    return Standing(now, old, total - now - old)


def texts_to_reseal(*, column: SealedColumn, after: Any, limit: int) -> list[SealedText]:
    """The next texts, by the row's key, that the current key did not seal."""
    parts = column_sql(column)
    found = sql.SQL(
        "SELECT {key}, {text} FROM {table} WHERE {text} <> '' AND NOT starts_with({text}, %s)"
        " AND (%s OR {key} > %s) ORDER BY {key} LIMIT %s"
    ).format(key=parts.key, text=parts.text, table=parts.table)
    with connection.cursor() as cursor:
        cursor.execute(found, [known_prefixes()[0], after is None, after, limit])
        return [SealedText(*row) for row in cursor.fetchall()]
