"""Ticks and doorbells of messages to people."""

from celery import shared_task
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.services import announce as notify_announce
from attempts.notify.services import cards as notify_refresh
from attempts.notify.services import chat_accounts as chat_identity
from attempts.notify.services import send as notify_send
from attempts.notify.services.announce import REFRESH
from attempts.notify.services.routes import SEND
from governance.outside.wake_up import wake_up_received


@shared_task(name="attempts.tasks.notify.notifications_send")
def notifications_send_task() -> None:
    """Writes down what new reviews need, and sends what is due."""
    wake_up_received(SEND)
    notify_announce.reviews_announce(at=timezone.now())
    notify_send.notifications_send(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.cards_refresh")
def cards_refresh_task() -> None:
    """Draws cards anew whose review changed."""
    wake_up_received(REFRESH)
    notify_refresh.cards_refresh(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.chat_tidy")
def chat_tidy_task() -> None:
    """Removes codes and callbacks that are over, and accounts of people whose access ended."""
    chat_identity.chat_tidy(at=timezone.now())
