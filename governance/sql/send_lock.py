"""The send lock, between "stop" and "send". A transaction that writes an intent takes it shared; one that closes
something (a shutdown, a contract, a role) takes it exclusively. Each takes it before it reads, and until it ends.

A shutdown waits for the intents that are being written, and every later intent sees the shutdown.
"""

from django.db import connection

# Any number that no other advisory lock uses. All processes must agree on it, also during an upgrade: with a new number
# an old process could send while a new one stops.
SEND_LOCK = 0x686F6C64
# The `first` of a statement that reads what the lock protects. In one and the same statement the read would have a
# snapshot from before the wait, and would not see the shutdown that it waited for.
TAKE_SEND_LOCK = f"SELECT pg_advisory_xact_lock_shared({SEND_LOCK})"


def send_lock_share() -> None:
    """Before the reads that it protects, in a separate statement: their snapshot must be newer than the lock."""
    _lock("pg_advisory_xact_lock_shared")


def send_lock_exclude() -> None:
    """Waits for all transactions that send. New ones wait until this one ends."""
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [SEND_LOCK])
