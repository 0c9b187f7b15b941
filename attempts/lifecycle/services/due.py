"""How scheduled tasks of this app work off due rows: one transaction per row, so that one bad row stops no other."""

from collections.abc import Callable, Iterable
from uuid import UUID

import structlog
from django.db import connection, transaction

from attempts.metrics import TICK_ROWS_FAILED
from reasoncodes.base.trace import lines_about

log = structlog.get_logger("holdpoint.ticks")


def each_due(ids: Iterable[UUID], handle: Callable[[UUID], bool], *, tick: str) -> int:
    """Handles each row and returns how many were handled. A row that fails is logged, counted and left for the next run
    of the task."""
    handled = 0
    for row_id in ids:
        try:
            with lines_about(tick=tick, row_id=row_id), transaction.atomic():
                handled += handle(row_id)
        except Exception as error:
            # Any error: a row that fails in an unforeseen way must not stop the rows behind it, on every run, for ever.
            # Without a database no row can be handled, so then the task fails as a whole.
            if not connection.is_usable():
                raise
            # Only the error's type: its text may repeat a submitted value.
            log.error("tick_row_failed", tick=tick, row_id=str(row_id), error=type(error).__name__)
            TICK_ROWS_FAILED.labels(tick).inc()
    return handled
