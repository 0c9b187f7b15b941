"""Ticks and doorbells of messages to people."""

from celery import shared_task
from django.utils import timezone

from attempts.doorbell import heard
from attempts.notify.configured import public_url
from attempts.services import chat_identity, notify_announce, notify_refresh, notify_send
from attempts.services.notify_route import SEND
from attempts.services.notify_touch import REFRESH


@shared_task
def notifications_send() -> None:
    """Writes down what new reviews need, and sends what is due."""
    heard(SEND)
    notify_announce.reviews_announce(at=timezone.now())
    notify_send.notifications_send(now=timezone.now, base_url=public_url())


@shared_task
def cards_refresh() -> None:
    """Draws cards anew whose review changed."""
    heard(REFRESH)
    notify_refresh.cards_refresh(now=timezone.now, base_url=public_url())


@shared_task
def chat_tidy() -> None:
    """Removes codes and callbacks that are over, and accounts of people whose access ended."""
    chat_identity.chat_tidy(at=timezone.now())
