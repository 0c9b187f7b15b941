"""Several tables' rows in one statement. Round trips cost more than anything else on the way of a request."""

from collections.abc import Sequence
from typing import Any

from django.db import connection, models
from django.db.models.sql import InsertQuery


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


def _insert(rows: Sequence[models.Model]) -> tuple[str, Sequence[Any]]:
    model = type(rows[0])
    query = InsertQuery(model)
    query.insert_values(list(model._meta.local_concrete_fields), list(rows), raw=False)
    ((sql, params),) = query.get_compiler(connection=connection).as_sql()
    return sql, params
