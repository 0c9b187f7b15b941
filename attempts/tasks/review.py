"""Ticks and doorbells of reviews."""

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from attempts.services import review_reminder, review_tick


@shared_task
def reviews_expire() -> None:
    """Ends every review whose deadline has passed."""
    review_tick.reviews_expire(at=timezone.now())


@shared_task
def reviews_remind() -> None:
    """Reminds of every review that is due for it."""
    review_tick.reviews_remind(at=timezone.now())


@shared_task
def review_reminder_send(review_id: str) -> None:
    """The mails of one reminder."""
    review_reminder.review_reminder_send(review_id=UUID(review_id))
