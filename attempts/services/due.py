"""One due row after the other, each in a transaction of its own: one that cannot be handled does not stop the rest."""

from collections.abc import Callable, Iterable
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, transaction

log = structlog.get_logger("holdpoint.ticks")


def each_due(ids: Iterable[UUID], handle: Callable[[UUID], bool], *, tick: str) -> int:
    """How many were handled. Without a database there is nothing to survive for: that is raised."""
    handled = 0
    for row_id in ids:
        try:
            with transaction.atomic():
                handled += handle(row_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            log.error("tick_row_failed", tick=tick, row_id=str(row_id), error=type(error).__name__)
    return handled
