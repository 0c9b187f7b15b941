"""The lock between "stop" and "send". Whoever writes an intent takes it shared; whoever closes something takes it
exclusively, first.

Both hold it until the end of the transaction: a shutdown waits for the intents that are
being written, and the next one sees it. Without it an intent could commit a moment after the shutdown.
"""

from django.db import connection

SEND_LOCK = 0x686F6C64  # any constant that nobody else uses
TAKE_SEND_LOCK = (
    f"SELECT pg_advisory_xact_lock_shared({SEND_LOCK})"  # the `first` of a statement that reads what the lock protects
)


def send_lock_share() -> None:
    """A statement of its own, before the reads that it protects: their snapshot must be younger than the lock."""
    _lock("pg_advisory_xact_lock_shared")


def send_lock_exclude() -> None:
    _lock("pg_advisory_xact_lock")


def _lock(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [SEND_LOCK])
