"""Marks the cards of a review to be drawn anew, in the transaction that changed it."""

from django.db.models.functions import Now

from attempts.doorbell import ring_once
from attempts.models import Notification, Review
from attempts.states import DeliveryState, NotifyKind

REFRESH = "attempts.tasks.notify.cards_refresh"


def cards_touch(review: Review) -> None:
    """One statement by an index; without a card nothing else happens."""
    shown = Notification.objects.filter(
        review=review, kind=NotifyKind.CARD, state__in=[DeliveryState.PENDING, DeliveryState.SENT]
    )
    if shown.update(refresh_at=Now(), refresh_tries=0):
        ring_once(REFRESH)
