"""Scheduled work on reviews: end them at their deadline, and remind people before it.

Each review is locked, checked again and committed by itself (`each_review_due`), so two runs at once do it once.
"""

from datetime import datetime

from attempts.notify.services.announce import reminder_rows
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import LockedReview, database_now
from attempts.reviews.selectors.standing import reminder_people
from attempts.reviews.services.decide import record_review, review_end_expired
from attempts.reviews.services.due import each_review_due
from attempts.reviews.states import ReviewStatus
from governance.outside.wake_up import wake_up
from reasoncodes.base.actors import CLOCK
from reasoncodes.base.errors import WrongState

SEND = "attempts.tasks.review.review_reminder_send"


def reviews_expire(*, at: datetime) -> int:
    """Ends reviews whose deadline has passed and returns how many ended."""
    # `at` only selects candidates. The database's clock decides under the lock, as it does for votes: otherwise a vote
    # could still count on one machine after the review expired on another.
    due = Review.objects.filter(status=ReviewStatus.REQUESTED, expires_at__lte=at)
    return each_review_due(due, "expires_at", _expire, tick="reviews_expire")


def reviews_remind(*, at: datetime) -> int:
    """Reminds people of reviews that are due for it, once per review. A review without `remind_at` is skipped."""
    due = Review.objects.filter(status=ReviewStatus.REQUESTED, reminded_at=None, remind_at__lte=at)
    return each_review_due(due, "remind_at", lambda locked: _remind(locked, at), tick="reviews_remind")


def _expire(locked: LockedReview) -> bool:
    now = database_now()
    if not locked.overdue(now):
        return False
    # The two rows contradict each other. The row is left alone, and the failure is logged and counted on every run.
    if locked.attempt is not None and not locked.review.holds(locked.attempt):
        raise WrongState("The attempt is not held any more, but its review is open.")
    review_end_expired(locked, now=now)
    return True


def _remind(locked: LockedReview, at: datetime) -> bool:
    """Records the reminder with the time when it was due. A review whose deadline has passed is left to its expiry."""
    review = locked.review
    if review.reminded_at is not None or review.remind_at is None or locked.overdue(database_now()):
        return False
    people = reminder_people(review=review, attempt=locked.attempt)
    review.reminded_at = at
    # Computed again: a person who signed may have lost the role since, and the tier is open again.
    review.open_tiers = list(people.open_tiers) if review.buckets else []
    review.save(update_fields=["reminded_at", "open_tiers"])
    payload = {"reviewers": len(people.reviewers), "escalated_to": len(people.operators)}
    record_review(review, "review.reminded", actor=CLOCK, at=review.remind_at, payload=payload)
    reminder_rows(review, people, at=at)
    wake_up(SEND, review.id)
    return True
