"""How scheduled tasks work off due reviews: each one is locked, checked again and committed by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.fairness.rules import in_turns
from attempts.lifecycle.services.due import each_due
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import LockedReview, review_lock_if_free
from reasoncodes.base.tenancy import every_tenant

BATCH = 200


def each_review_due(due: QuerySet[Review], moment: str, act: Callable[[LockedReview], bool], *, tick: str) -> int:
    """Calls `act` for each due review that is still open, and returns how many it handled. `moment`: the column of the
    due time."""

    with every_tenant():
        return _each(_pages(due, moment), act, tick=tick, most=None)


def each_review_in_turn(
    due: QuerySet[Review],
    moment: str,
    act: Callable[[LockedReview], bool],
    *,
    tick: str,
    weights: Mapping[UUID, int],
    most: int,
) -> int:
    """The same for at most `most` reviews of these organizations, in fair turns between them by their weights."""
    with every_tenant():
        lines = {key: _pages(due.filter(organization_id=key), moment) for key in weights}
        return _each(in_turns(lines, weights), act, tick=tick, most=most)


def _each(review_ids: Iterable[UUID], act: Callable[[LockedReview], bool], *, tick: str, most: int | None) -> int:
    done = 0

    # Two runs of a task at once do everything once: the second one skips a locked row, or finds it changed.
    def handle(review_id: UUID) -> bool:
        nonlocal done
        locked = review_lock_if_free(review_id=review_id)
        handled = locked is not None and locked.is_open and act(locked)
        done += handled
        return handled

    # Bounded by what was done, not by what was tried: rows that fail must not use up every run.
    wanted = takewhile(lambda _: most is None or done < most, review_ids)
    return each_due(wanted, handle, tick=tick)


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
