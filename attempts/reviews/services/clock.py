"""What the clock does to reviews: it ends them at their deadline and reminds people before it. Nothing else.

Each row is locked, re-checked and committed by itself: two beats at once do everything once, and a row that cannot be
ended does not stop the others.
"""

from datetime import datetime

from attempts.lifecycle.states import AttemptState
from attempts.notify.services.announce import reminder_rows
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import LockedReview, database_now
from attempts.reviews.selectors.standing import reminder_people
from attempts.reviews.services.due import each_review_due
from attempts.reviews.services.end import record_review, review_end_expired
from attempts.reviews.states import ReviewStatus
from governance.outside.wake_up import wake_up
from reasoncodes.base.actors import CLOCK
from reasoncodes.base.errors import WrongState

SEND = "attempts.tasks.review.review_reminder_send"


def reviews_expire(*, at: datetime) -> int:
    """`at` only chooses whom to look at; the database's clock decides, under the lock. Returns how many ended."""
    due = Review.objects.filter(status=ReviewStatus.REQUESTED, expires_at__lte=at)
    return each_review_due(due, "expires_at", _expire, tick="reviews_expire")


def reviews_remind(*, at: datetime) -> int:
    """Once per review. One without a time to remind at is not reminded of."""
    due = Review.objects.filter(status=ReviewStatus.REQUESTED, reminded_at=None, remind_at__lte=at)
    return each_review_due(due, "remind_at", lambda locked: _remind(locked, at), tick="reviews_remind")


def _expire(locked: LockedReview) -> bool:
    if not locked.overdue(database_now()):
        return False
    if locked.attempt is not None and locked.attempt.state != AttemptState.REVIEW_REQUIRED:
        raise WrongState("The attempt is not held any more, but its review is open.")
    review_end_expired(locked)
    return True


def _remind(locked: LockedReview, at: datetime) -> bool:
    """Event time is when it was due. A review whose deadline has passed is left to its expiry."""
    review = locked.review
    if review.reminded_at is not None or review.remind_at is None or locked.overdue(database_now()):
        return False
    people = reminder_people(review=review, attempt=locked.attempt)
    review.reminded_at = at
    review.open_tiers = list(people.open_tiers) if review.buckets else []  # somebody who signed may have lost the role
    review.save(update_fields=["reminded_at", "open_tiers"])
    payload = {"reviewers": len(people.reviewers), "escalated_to": len(people.operators)}
    record_review(review, "review.reminded", actor=CLOCK, at=review.remind_at, payload=payload)
    reminder_rows(review, people, at=at)
    wake_up(SEND, review.id)
    return True
