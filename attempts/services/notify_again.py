"""A person has a message sent again."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.doorbell import ring_once
from attempts.models import Notification
from attempts.services.notify_route import SEND
from attempts.states import DeliveryState
from governance.selectors import tenant_get
from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound, WrongState

AGAIN = frozenset({DeliveryState.FAILED, DeliveryState.PENDING})


def notification_resend(*, actor: Actor, at: datetime, notification_id: UUID) -> Notification:
    """One that failed or waits for its next try. A card that was sent is not sent again: there is one per review."""
    with transaction.atomic():
        row = tenant_get(Notification, notification_id, lock=True)
        if not actor.may_act_in(row.organization_id):
            raise NotFound
        if row.state not in AGAIN:
            raise WrongState(f"This message is {row.state}.")
        row.state, row.tries, row.next_try_at, row.last_error = DeliveryState.PENDING.value, 0, at, ""
        row.save(update_fields=["state", "tries", "next_try_at", "last_error"])
        ring_once(SEND)
    return row
