"""The gate between "stop" and "send". Whoever writes an intent passes it; whoever closes something shuts it first.

Shared for passing, exclusive for shutting, until the end of the transaction: a shutdown waits for the intents that are
being written, and the next one sees it. Without it an intent could commit a moment after the shutdown.
"""

from django.db import connection

GATE = 0x686F6C64  # any constant that nobody else uses
PASS = f"SELECT pg_advisory_xact_lock_shared({GATE})"  # the `first` of a statement that reads what the gate protects


def gate_pass() -> None:
    """A statement of its own, before the reads that it protects: their snapshot must be younger than the lock."""
    _lock("pg_advisory_xact_lock_shared")


def gate_shut() -> None:
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [GATE])
