"""Reviews as the operator console lists them; the queue that reviewers work through is in selectors.review."""

from django.db.models import Q, QuerySet

from attempts.models import Review
from attempts.states import ReviewKind, ReviewStatus
from governance.selectors.lists import uuid_or_none


def reviews_shown(*, rows: QuerySet[Review], status: str, kind: str) -> QuerySet[Review]:
    """Those with this ending, or (unless one is asked for) those that wait; only of these the kind can be chosen."""
    if status in set(ReviewStatus) - {ReviewStatus.REQUESTED}:
        # Said twice, because the index is of those that have ended.
        return rows.exclude(status=ReviewStatus.REQUESTED).filter(status=status)
    rows = rows.filter(status=ReviewStatus.REQUESTED)
    return rows.filter(kind=kind) if kind in set(ReviewKind) else rows


def review_matches(term: str) -> Q | None:
    """By its own id, its attempt's, or that of the workflow step which waits for it."""
    wanted = uuid_or_none(term)
    if wanted is None:
        return None
    return Q(id=wanted) | Q(attempt_id=wanted) | Q(origin_step=wanted, status=ReviewStatus.REQUESTED)
