"""Tasks of notifications: scheduled, and started earlier by wake-ups."""

from celery import shared_task
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.services import announce as notify_announce
from attempts.notify.services import cards as notify_refresh
from attempts.notify.services import cases as case_notices
from attempts.notify.services import chat_accounts as chat_identity
from attempts.notify.services import holds_full, key_ends
from attempts.notify.services import send as notify_send
from attempts.notify.services.announce import REFRESH
from attempts.notify.services.routes import SEND
from governance.outside.wake_up import wake_up_once, wake_up_received


@shared_task(name="attempts.tasks.notify.notifications_send")
def notifications_send_task() -> None:
    """Writes the messages of new reviews and cases, and sends what is due."""
    # Before reading: a change that commits after the rows were read must send another wake-up.
    wake_up_received(SEND)
    told = notify_announce.reviews_announce(at=timezone.now())
    notify_send.notifications_send(now=timezone.now, base_url=public_url())
    if told >= notify_announce.MOST_AT_ONCE:
        wake_up_once(SEND)  # more reviews may wait
    case_notices.case_notices_send(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.cards_refresh")
def cards_refresh_task() -> None:
    """Refreshes cards whose review has changed."""
    wake_up_received(REFRESH)
    notify_refresh.cards_refresh(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.key_ends_tell")
def key_ends_tell_task() -> None:
    """Tells people which API keys end within 30, 7 and 1 days."""
    key_ends.key_ends_tell(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.holds_warn")
def holds_warn_task() -> None:
    """Tells people that open holds have nearly reached their cap."""
    holds_full.holds_warn(now=timezone.now, base_url=public_url())


@shared_task(name="attempts.tasks.notify.chat_tidy")
def chat_tidy_task() -> None:
    """Deletes expired codes and old callbacks, and ends links of people whose access ended."""
    chat_identity.chat_tidy(at=timezone.now())
