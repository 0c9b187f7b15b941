"""How scheduled tasks work off due reviews: each one is locked, checked again and committed by itself."""

from collections.abc import Callable, Iterator
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.lifecycle.services.due import each_due
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import LockedReview, review_lock_if_free
from reasoncodes.base.tenancy import every_tenant

BATCH = 200


def each_review_due(due: QuerySet[Review], moment: str, act: Callable[[LockedReview], bool], *, tick: str) -> int:
    """Calls `act` for each due review that is still open, and returns how many it handled. `moment`: the column of the
    due time."""

    # Two runs of a task at once do everything once: the second one skips a locked row, or finds it changed.
    def handle(review_id: UUID) -> bool:
        locked = review_lock_if_free(review_id=review_id)
        return locked is not None and locked.is_open and act(locked)

    with every_tenant():
        return each_due(_pages(due, moment), handle, tick=tick)


def _pages(due: QuerySet[Review], moment: str) -> Iterator[UUID]:
    """Ids, oldest first, page by page."""
    # By key, never back to a row: one that failed is still due, and would otherwise fill every page.
    after = Q()
    while True:
        page = list(due.filter(after).order_by(moment, "id").values_list(moment, "id")[:BATCH])
        yield from (row_id for _, row_id in page)
        if len(page) < BATCH:
            return
        when, row_id = page[-1]
        after = Q(**{f"{moment}__gt": when}) | Q(**{moment: when, "id__gt": row_id})
