"""Rows for the console's benchmark: copies of rows that services wrote, distributed over the last thirty days."""

from typing import Any

from django.db import connection

# A UUIDv7 of a random moment in the last thirty days. Built by hand, because older servers have no function for it.
SPREAD = (
    "(lpad(to_hex(((extract(epoch FROM now()) - random() * 2592000) * 1000)::bigint), 12, '0')"
    " || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"
)
MOMENT = "now() - random() * interval '30 days'"


def copy_rows(table: str, source: Any, count: int, **columns: str) -> None:
    """Inserts `count` copies of one row. `columns` are SQL expressions; `n` is the number of the copy."""
    # By SQL and not by the services: making a million attempts one by one would take far longer than the measurement.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
            [table],
        )
        names = [name for (name,) in cursor.fetchall()]
        chosen = {"id": SPREAD} | columns
        values = ", ".join(chosen.get(name, f"row.{name}") for name in names)
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {values}"
            f" FROM {table} row, generate_series(1, {count}) n WHERE row.id = %s",
            [source],
        )


def copy_reviews(source: Any, state: str, decided_at: str, status: str) -> None:
    """Inserts a review for every attempt in this state that has none. The last two arguments are SQL expressions."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'attempts_review'"
            " ORDER BY ordinal_position"
        )
        names = [name for (name,) in cursor.fetchall()]
        chosen = {
            "id": "a.id",
            "attempt_id": "a.id",
            "expires_at": "now() + random() * interval '1 day'",
            "requested_at": "now() - random() * interval '2 days'",
            "decided_at": decided_at,
            "status": status,
        }
        values = ", ".join(chosen.get(name, f"row.{name}") for name in names)
        cursor.execute(
            f"INSERT INTO attempts_review ({', '.join(names)}) SELECT {values}"
            " FROM attempts_review row, attempts_attempt a WHERE row.id = %s AND a.state = %s"
            " AND NOT EXISTS (SELECT 1 FROM attempts_review other WHERE other.attempt_id = a.id)",
            [source, state],
        )


def analyze() -> None:
    # Without new statistics the planner would still plan for a handful of rows.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
