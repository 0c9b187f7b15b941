"""Helpers: everything that the database holds as text, row counts of all tables, and two real connections at once."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from reasoncodes.base.tenancy import leave_scope


def tables() -> list[str]:
    return sorted(connection.introspection.table_names())


def everything_stored() -> str:
    """Every row of every table as text, admin history and sessions included."""
    with connection.cursor() as cursor:
        found = []
        for table in tables():
            cursor.execute(f'SELECT t::text FROM "{table}" t')  # noqa: S608
            found += [row[0] for row in cursor.fetchall()]
    return "\n".join(found)


def row_counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        counts = {}
        for table in tables():
            cursor.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608
            counts[table] = int(cursor.fetchone()[0])
    return counts


def governed_counts() -> dict[str, int]:
    """Without the read audit, and the references of people who are in it for the first time."""
    reading = {"governance_readaccess", "governance_personreference"}
    return {table: count for table, count in row_counts().items() if table not in reading}


def in_parallel(*works: Callable[[], Any]) -> list[Any]:
    """Each in a thread with a connection of its own; a failure in one of them is a failure of the test."""
    results: list[Any] = [None] * len(works)
    failures: list[BaseException] = []

    def run(index: int, work: Callable[[], Any]) -> None:
        try:
            results[index] = work()
        except BaseException as error:
            failures.append(error)
        finally:
            leave_scope()
            connection.close()

    threads = [threading.Thread(target=run, args=[index, work]) for index, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if failures:
        raise failures[0]
    return results
