"""What becomes of a message: taken in, known already, or parked. Whoever calls acknowledges it afterwards."""

from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID

from reasoncodes.tenancy import every_tenant
from workflows.models import ParkedMessage
from workflows.services.message_apply import Unacceptable, message_apply, message_signer
from workflows.states import ParkedWhy
from workflows.streams import Message

MOST_DELIVERIES = 5
MOST_PROBLEMS = 20


class Fate(StrEnum):
    TAKEN = "taken"
    DUPLICATE = "duplicate"
    PARKED = "parked"


def message_take(*, message: Message, at: datetime, region: str) -> Fate:
    """Committed when it returns. Raises only what may pass by itself: the message then stays with its group."""
    try:
        if message.deliveries > MOST_DELIVERIES:
            raise Unacceptable(ParkedWhy.DELIVERIES, credential=message_signer(message=message, at=at))
        received = message_apply(message=message, at=at, region=region)
    except Unacceptable as refusal:
        _park(message, refusal, at)
        return Fate.PARKED
    return Fate.DUPLICATE if received.duplicate else Fate.TAKEN


def _park(message: Message, refusal: Unacceptable, at: datetime) -> None:
    """Once: a message that comes again, because its consumer died before the acknowledgement, is parked already."""
    account = refusal.credential.key.service_account if refusal.credential else None
    problems = [{"pointer": one.pointer, "rule": one.rule or "", "message": one.message} for one in refusal.errors]
    row = ParkedMessage(
        organization_id=account.organization_id if account else None,
        service_account=account,
        event_type=message.event_type,
        entry_id=message.entry_id,
        event_id=_event_id(refusal.envelope),
        data_sha256=sha256(message.data).hexdigest(),
        data_bytes=len(message.data),
        why=refusal.why,
        problems=problems[:MOST_PROBLEMS],
        deliveries=message.deliveries,
        parked_at=at,
    )
    with every_tenant():
        ParkedMessage.objects.bulk_create([row], ignore_conflicts=True)


def _event_id(envelope: Any) -> UUID | None:
    with suppress(TypeError, ValueError, KeyError, AttributeError):
        return UUID(envelope["event_id"])
    return None
