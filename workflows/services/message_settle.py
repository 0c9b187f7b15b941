"""What people do with parked messages: drive one again, or find that nothing is to be done. With a reason, on record.

Driving again lowers no check: signature, scope and schema count as they do for a new message.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from governance.ledger.append import ledger_append
from governance.services.note import note_create
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import NotFound, WrongState
from reasoncodes.selectors import reason_code_require
from workflows.errors import MessageGone, MessageStillRefused, StreamsUnavailable
from workflows.models import ParkedMessage
from workflows.services.event_receive import Received
from workflows.services.message_apply import Unacceptable, message_apply
from workflows.states import ParkedStatus
from workflows.streams import Message, message_read


@violations_recorded
def message_redrive(
    *, message_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime, region: str
) -> Received:
    """Whoever had sent it is the actor of what it does; the person stands in the ledger as the one who drove it."""
    with transaction.atomic():
        row = _lock(message_id, actor, reason_code, note)
        try:
            received = message_apply(message=_from_stream(row), at=at, region=region)
        except Unacceptable as refusal:
            said = f"Tried again and still refused: {refusal.why.replace('_', ' ')}. It stays parked."
            raise MessageStillRefused(said, errors=list(refusal.errors)) from None
        row.organization_id = row.organization_id or received.event.organization_id
        made = {"made": str(received.event.id), "outcome": str(received.event.outcome)}
        _settle(row, ParkedStatus.TAKEN, reason_code, note, actor=actor, at=at, more=made)
    return received


@violations_recorded
def message_dismiss(*, message_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime) -> ParkedMessage:
    """It stays in the list of those that were settled; its stream lets go of it in time."""
    with transaction.atomic():
        row = _lock(message_id, actor, reason_code, note)
        _settle(row, ParkedStatus.DISMISSED, reason_code, note, actor=actor, at=at, more={})
    return row


def _lock(message_id: UUID, actor: Actor, reason_code: str, note: str) -> ParkedMessage:
    """One without an organization is in the scope of administrators only, who come this far by that."""
    row = ParkedMessage.objects.select_for_update(no_key=True, of=("self",)).filter(id=message_id).first()
    if row is None or not (row.organization_id is None or actor.may_act_in(row.organization_id)):
        raise NotFound
    reason_code_require(organization_id=row.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    if row.status != ParkedStatus.PARKED:
        raise WrongState(f"The message is {row.status} already.")
    return row


def _from_stream(row: ParkedMessage) -> Message:
    """The very message that was parked, or none."""
    try:
        message = message_read(event_type=row.event_type, entry_id=row.entry_id)
    except RedisError:
        raise StreamsUnavailable from None
    if message is None or sha256(message.data).hexdigest() != row.data_sha256:
        raise MessageGone
    return message


def _settle(
    row: ParkedMessage,
    status: ParkedStatus,
    reason_code: str,
    note: str,
    *,
    actor: Actor,
    at: datetime,
    more: dict[str, Any],
) -> None:
    kept = note_create(organization_id=row.organization_id, text=note)
    row.status, row.settled_at, row.settled_code = status, at, reason_code
    row.save(update_fields=["organization", "status", "settled_at", "settled_code"])
    word = "redriven" if status is ParkedStatus.TAKEN else "dismissed"
    said = {"event": row.event_type, "why": row.why, "data_sha256": row.data_sha256} | more
    ledger_append(
        action=f"workflow.message_{word}",
        organization_id=row.organization_id,
        subject_type="parked_message",
        subject_id=row.id,
        actor=actor,
        at=at,
        reason_code=reason_code,
        payload=said | ({"note": str(kept.id), "note_sha256": kept.sha256} if kept else {}),
    )
