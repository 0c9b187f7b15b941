"""What ticks over reviews share: each row is locked, re-checked and committed by itself, so two beats at once do
everything once and a row that fails does not stop the others."""

from collections.abc import Callable
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from attempts.models import Review
from attempts.selectors.review import Held, review_lock_if_free
from reasoncodes.tenancy import every_tenant

log = structlog.get_logger("holdpoint.reviews")
BATCH = 200


def each_due(due: QuerySet[Review], moment: str, act: Callable[[Held], bool]) -> int:
    """Oldest first, in pages that never come back to a row: what failed once waits for the next tick."""
    done, after = 0, Q()
    with every_tenant():
        while True:
            page = list(due.filter(after).order_by(moment, "id").values_list(moment, "id")[:BATCH])
            done += sum(_alone(row_id, act) for _, row_id in page)
            if len(page) < BATCH:
                return done
            when, row_id = page[-1]
            after = Q(**{f"{moment}__gt": when}) | Q(**{moment: when, "id__gt": row_id})


def _alone(review_id: UUID, act: Callable[[Held], bool]) -> bool:
    try:
        with transaction.atomic():
            held = review_lock_if_free(review_id=review_id)
            return held is not None and held.is_open and act(held)
    except Exception as error:
        if not connection.is_usable():
            raise
        log.error("review_tick_row_failed", review_id=str(review_id), exc_info=error)
        return False
