"""Messages of the inbound streams: checked, received like `POST /api/v1/events`, or parked; and what people do with
parked ones."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from governance.boundary.services import note_create
from governance.ledger.services import ledger_append
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import Credential, credential_for_signature
from governance.people.services.accounts import api_key_touch
from governance.violations.errors import CrossTenant
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, NotFound, WrongState
from reasoncodes.base.json_body import parse_json
from reasoncodes.base.tenancy import every_tenant, tenant_scope
from reasoncodes.base.trace import bind_trace, clear_trace, read_trace
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require
from workflows.events.adapters.streams import KEY, SIGNATURE, StreamMessage, message_read
from workflows.events.errors import EventInvalid, MessageGone, MessageStillRefused, StreamsUnavailable
from workflows.events.models import ParkedMessage
from workflows.events.services.receive import Received, event_receive
from workflows.events.states import ParkedStatus, ParkedWhy

PREFIX = re.compile(r"[0-9a-f]{10}")


class Unacceptable(Exception):
    """The message would be refused every time, so it is parked. Contains pointers and rules, never a value."""

    def __init__(
        self,
        why: ParkedWhy,
        *,
        credential: Credential | None = None,
        envelope: Any = None,
        errors: Sequence[FieldError] = (),
    ) -> None:
        super().__init__(why)
        self.why, self.credential, self.envelope, self.errors = why, credential, envelope, errors


def _message_apply(*, message: StreamMessage, at: datetime, region: str) -> Received:
    """Raises Unacceptable, or an error that may be gone at the next delivery."""
    credential = _message_signer(message=message, at=at)
    if credential is None:  # an unsigned message is not even parsed: anybody who reaches Valkey can write one
        raise Unacceptable(ParkedWhy.SIGNATURE)
    if ApiScope.ORCHESTRATOR_WRITE not in credential.actor.scopes:
        raise Unacceptable(ParkedWhy.SCOPE, credential=credential)
    try:
        envelope = parse_json(message.data)
    except DomainError:
        raise Unacceptable(ParkedWhy.UNREADABLE, credential=credential) from None
    if isinstance(envelope, dict) and envelope.get("event_type") != message.event_type:
        raise Unacceptable(ParkedWhy.WRONG_STREAM, credential=credential, envelope=envelope)
    with _context(credential, envelope):
        return _receive(credential, envelope, at, region)


def _message_signer(*, message: StreamMessage, at: datetime) -> Credential | None:
    """The key that signed the message. The organization comes from the key, as over HTTP; the envelope must agree with
    it."""
    prefix = message.fields.get(KEY, "")
    if not PREFIX.fullmatch(prefix):
        return None
    signature = message.fields.get(SIGNATURE, "")
    return credential_for_signature(prefix=prefix, data=message.data, signature=signature, at=at)


@contextmanager
def _context(credential: Credential, envelope: Any) -> Iterator[None]:
    """Tenant scope of the key's organization, and the trace that the module started."""
    given = envelope.get("traceparent") if isinstance(envelope, dict) else None
    bind_trace(read_trace(request_id="", traceparent=given if isinstance(given, str) else ""))
    try:
        with tenant_scope(credential.actor.organization_ids):
            yield
    finally:
        clear_trace()


def _receive(credential: Credential, envelope: Any, at: datetime, region: str) -> Received:
    try:
        received = event_receive(envelope=envelope, actor=credential.actor, at=at, region=region)
    except EventInvalid as refusal:
        raise Unacceptable(ParkedWhy.INVALID, credential=credential, envelope=envelope, errors=refusal.errors) from None
    except CrossTenant:
        raise Unacceptable(ParkedWhy.FOREIGN, credential=credential, envelope=envelope) from None
    except DomainError as refusal:
        if refusal.status >= 500:  # our own trouble: the message stays with its group and is delivered again
            raise
        raise Unacceptable(
            ParkedWhy.REFUSED, credential=credential, envelope=envelope, errors=[FieldError("", refusal.code)]
        ) from None
    api_key_touch(key=credential.key, at=at)
    return received


# A message that was delivered this often without an end probably kills its consumer; it is parked unread.
MOST_DELIVERIES = 5
MOST_PROBLEMS = 20


class Fate(StrEnum):
    TAKEN = "taken"
    DUPLICATE = "duplicate"
    PARKED = "parked"


def message_take(*, message: StreamMessage, at: datetime, region: str) -> Fate:
    """Receive or park a message; committed when it returns. An error means: not done, deliver it again."""
    try:
        if message.deliveries > MOST_DELIVERIES:
            raise Unacceptable(ParkedWhy.DELIVERIES, credential=_message_signer(message=message, at=at))
        received = _message_apply(message=message, at=at, region=region)
    except Unacceptable as refusal:
        _park(message, refusal, at)
        return Fate.PARKED
    return Fate.DUPLICATE if received.duplicate else Fate.TAKEN


def _park(message: StreamMessage, refusal: Unacceptable, at: datetime) -> None:
    """Metadata and a hash only: what could not be checked may contain anything, and stays in its stream."""
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
        # A consumer that died before the acknowledgement gets the message again; the unique entry id keeps one row.
        ParkedMessage.objects.bulk_create([row], ignore_conflicts=True)


def _event_id(envelope: Any) -> UUID | None:
    with suppress(TypeError, ValueError, KeyError, AttributeError):
        return UUID(envelope["event_id"])
    return None


@violations_recorded
def message_redrive(
    *, message_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime, region: str
) -> Received:
    """Process a parked message again, with every check. Its sender is the actor of its effects; the ledger entry of the
    redrive names the person."""
    with transaction.atomic():
        row = _lock(message_id, actor, reason_code, note)
        try:
            received = _message_apply(message=_from_stream(row), at=at, region=region)
        except Unacceptable as refusal:
            said = f"Tried again and still refused: {refusal.why.replace('_', ' ')}. It stays parked."
            raise MessageStillRefused(said, errors=list(refusal.errors)) from None
        row.organization_id = row.organization_id or received.event.organization_id
        made = {"made": str(received.event.id), "outcome": str(received.event.outcome)}
        _settle(row, ParkedStatus.TAKEN, reason_code, note, actor=actor, at=at, more=made)
    return received


@violations_recorded
def message_dismiss(*, message_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime) -> ParkedMessage:
    """Settle a parked message without processing it. Its row stays; its content leaves the stream with the usual
    trimming."""
    with transaction.atomic():
        row = _lock(message_id, actor, reason_code, note)
        _settle(row, ParkedStatus.DISMISSED, reason_code, note, actor=actor, at=at, more={})
    return row


def _lock(message_id: UUID, actor: Actor, reason_code: str, note: str) -> ParkedMessage:
    """The parked message, locked: two people must not both settle it."""
    # A message without an organization is in the scope of administrators only, so nobody else gets this far.
    row = ParkedMessage.objects.select_for_update(no_key=True, of=("self",)).filter(id=message_id).first()
    if row is None or not (row.organization_id is None or actor.may_act_in(row.organization_id)):
        raise NotFound
    reason_code_require(organization_id=row.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    if row.status != ParkedStatus.PARKED:
        raise WrongState(f"The message is {row.status} already.")
    return row


def _from_stream(row: ParkedMessage) -> StreamMessage:
    """The message from its stream. Its hash must be the one that was parked."""
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
