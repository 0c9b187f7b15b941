"""Several tables' rows in one statement. Round trips cost more than anything else on the way of a request."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import connection, models


def insert_together(*groups: Sequence[models.Model]) -> None:
    """Inserts all rows of all groups (one model per group) as one data-modifying statement, or none of them.

    Foreign keys between the groups hold: they are checked at commit. Primary keys must be set by the caller.
    """
    parts = [_insert(rows) for rows in groups if rows]
    if not parts:
        return
    *earlier, (last_sql, last_params) = parts
    names = ", ".join(f"i{number} AS ({sql})" for number, (sql, _) in enumerate(earlier))
    params = [value for _, values in earlier for value in values] + list(last_params)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {names} {last_sql}" if names else last_sql, params)
    for rows in groups:
        for row in rows:
            row._state.adding = False
            row._state.db = connection.alias


def _insert(rows: Sequence[models.Model]) -> tuple[str, list[Any]]:
    fields, head, places = _shape(type(rows[0]))
    params = [field.get_db_prep_save(field.pre_save(row, True), connection) for row in rows for field in fields]
    return head + ", ".join([places] * len(rows)), params


@cache
def _shape(model: type[models.Model]) -> tuple[tuple[Any, ...], str, str]:
    """Fields, `INSERT … VALUES` and one row's places; the same for every row of the model, so made once."""
    fields = tuple(model._meta.local_concrete_fields)
    columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    head = f"INSERT INTO {connection.ops.quote_name(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
    return fields, head, f"({', '.join(['%s'] * len(fields))})"
