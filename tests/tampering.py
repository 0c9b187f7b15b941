"""What the owner of the tables could do: triggers off, changes, triggers on again as they were."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

MODES = """
SELECT c.relname, t.tgname, t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relname = ANY(%s) AND c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
"""
WORDS = {"A": "ENABLE ALWAYS", "O": "ENABLE", "R": "ENABLE REPLICA", "D": "DISABLE"}


@contextmanager
def triggers_off(*tables: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(MODES, [list(tables)])
        modes = cursor.fetchall()
        # What waits for the end of the transaction happens now: a table that has such work cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        try:
            yield
        finally:
            for table, trigger, mode in modes:
                cursor.execute(f"ALTER TABLE {table} {WORDS[mode]} TRIGGER {trigger}")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def bound_rows(entry_id: UUID) -> bytes | None:
    """The rows that are bound to an entry, all parts; None if there are none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(rows, ''::bytea ORDER BY part) FROM governance_boundrows WHERE entry_id = %s", [entry_id]
        )
        (rows,) = cursor.fetchone()
    return None if rows is None else bytes(rows)
