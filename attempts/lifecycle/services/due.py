"""One due row after the other, each in a transaction of its own: the one way in which scheduled tasks fail."""

from collections.abc import Callable, Iterable
from uuid import UUID

import structlog
from django.db import connection, transaction

from attempts.metrics import TICK_ROWS_FAILED

log = structlog.get_logger("holdpoint.ticks")


def each_due(ids: Iterable[UUID], handle: Callable[[UUID], bool], *, tick: str) -> int:
    """How many were handled. A row that cannot be handled is logged, counted and left for the next tick; it does not
    stop the rest. The error is raised only when there is no connection to the database, nor a new one to be had: no
    other row could be handled either."""
    handled = 0
    for row_id in ids:
        try:
            with transaction.atomic():
                handled += handle(row_id)
        except Exception as error:
            if not connection.is_usable():
                raise
            # Only the error's type: its text may repeat a submitted value.
            log.error("tick_row_failed", tick=tick, row_id=str(row_id), error=type(error).__name__)
            TICK_ROWS_FAILED.labels(tick).inc()
    return handled
