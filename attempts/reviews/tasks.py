"""Tasks of reviews: the scheduled tasks for expiry and reminders, the wake-up after a reminder, and the end of
delegations."""

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.services.send import notifications_send
from attempts.reviews.services import clock as review_tick
from attempts.reviews.services.delegate import delegations_expire


@shared_task(name="attempts.tasks.review.reviews_expire")
def reviews_expire_task() -> None:
    """Ends every review whose deadline has passed."""
    review_tick.reviews_expire(at=timezone.now())


@shared_task(name="attempts.tasks.review.reviews_remind")
def reviews_remind_task() -> None:
    """Reminds people of every review that is due for it."""
    review_tick.reviews_remind(at=timezone.now())


@shared_task(name="attempts.tasks.review.delegations_expire")
def delegations_expire_task() -> None:
    """Puts the end of delegations that ran out on record."""
    delegations_expire(at=timezone.now())


@shared_task(name="attempts.tasks.review.review_reminder_send")
def review_reminder_send_task(review_id: str) -> None:
    """Sends the messages of one reminder at once. If the wake-up is lost, the scheduled task sends them."""
    notifications_send(now=timezone.now, base_url=public_url(), review_id=UUID(review_id))
