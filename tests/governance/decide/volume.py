"""Many recorded decisions, made from one real one: the same request and environment under new ids, oldest first."""

from typing import Any

from django.db import connection

COPY = """
INSERT INTO governance_enforcementdecision (id, {columns})
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + number / 4000), 12, '0')
        || '7' || lpad(to_hex(number %% 4000), 3, '0') || '8' || substr(md5(number::text), 1, 15))::uuid, {columns}
FROM governance_enforcementdecision, generate_series(1, %(count)s) AS number WHERE id = %(id)s
"""


def copies(*, of: Any, count: int) -> None:
    """Only the ids differ, so every copy re-evaluates like the original."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
            " WHERE table_name = 'governance_enforcementdecision' AND column_name <> 'id' AND table_schema = 'public'"
        )
        columns = cursor.fetchone()[0]
        cursor.execute(COPY.format(columns=columns), {"count": count, "id": of})
