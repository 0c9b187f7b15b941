"""Query plans on almost empty tables. Which of two indexes such a table is read by hangs on what earlier tests left in
it and in the statistics; so all others are away, inside the transaction of the test."""

from collections.abc import Iterable

from django.db import connection

_OTHERS = """
    SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid IN (SELECT indrelid FROM pg_index WHERE indexrelid::regclass::text = ANY(%(kept)s))
      AND NOT c.relname = ANY(%(kept)s) AND NOT i.indisprimary
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
"""


def only_these_indexes(kept: Iterable[str]) -> None:
    """Of the tables that these indexes belong to."""
    names = sorted(kept)
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS, {"kept": names})
        others = [name for (name,) in cursor.fetchall()]
        if others:
            cursor.execute(f"DROP INDEX {', '.join(others)}")
        for name in names:  # and of these, what earlier tests left
            cursor.execute(f"REINDEX INDEX {name}")
