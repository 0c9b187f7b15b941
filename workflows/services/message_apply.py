"""A message of an inbound stream: who signed it, what it says, and then the same service as `POST /api/v1/events`."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from governance.errors import CrossTenant
from governance.roles import ApiScope
from governance.selectors import Credential, credential_for_signature
from governance.services.api_key import api_key_touch
from reasoncodes.errors import DomainError, FieldError
from reasoncodes.json_body import parse_json
from reasoncodes.tenancy import tenant_scope
from reasoncodes.trace import bind_trace, clear_trace, read_trace
from workflows.errors import EventInvalid
from workflows.services.event_receive import Received, event_receive
from workflows.states import ParkedWhy
from workflows.streams import KEY, SIGNATURE, Message

PREFIX = re.compile(r"[0-9a-f]{10}")


class Unacceptable(Exception):
    """It will not be taken in as it is, however often it comes. Holds pointers and rules, never a value."""

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


def message_apply(*, message: Message, at: datetime, region: str) -> Received:
    """Raises Unacceptable, or what may pass by itself."""
    credential = message_signer(message=message, at=at)
    if credential is None:  # nothing that nobody answers for is even read
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


def message_signer(*, message: Message, at: datetime) -> Credential | None:
    """The organization comes from the key, as it does over HTTP; what the envelope says must agree with it."""
    prefix = message.fields.get(KEY, "")
    if not PREFIX.fullmatch(prefix):
        return None
    signature = message.fields.get(SIGNATURE, "")
    return credential_for_signature(prefix=prefix, data=message.data, signature=signature, at=at)


@contextmanager
def _context(credential: Credential, envelope: Any) -> Iterator[None]:
    """The key's organization is all that is in scope; the trace is the one that the module began."""
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
        if refusal.status >= 500:
            raise
        raise Unacceptable(
            ParkedWhy.REFUSED, credential=credential, envelope=envelope, errors=[FieldError("", refusal.code)]
        ) from None
    api_key_touch(key=credential.key, at=at)
    return received
