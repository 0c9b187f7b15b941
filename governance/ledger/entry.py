"""The exact bytes that a ledger entry's hash covers. Pure: a verifier without a database computes the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple
from uuid import UUID

from governance.canonical import canonical_bytes

FORMAT = "holdpoint-ledger-v1"


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """Everything of an entry except its payload, which enters by its salted hash and can be erased later."""

    id: UUID
    organization_id: UUID | None
    action: str
    subject_type: str
    subject_id: UUID
    actor_kind: str
    actor_ref: str
    reason_code: str
    request_id: str
    trace_id: str
    at: datetime


def payload_hash(*, payload: Mapping[str, Any], nonce: bytes) -> bytes:
    """Salted, so that a short payload cannot be guessed from its hash once it is erased."""
    return sha256(nonce + canonical_bytes(dict(payload))).digest()


def entry_hash(*, header: EntryHeader, payload_sha256: bytes) -> bytes:
    """SHA-256 over the canonical JSON of the header and the payload's hash."""
    return sha256(
        canonical_bytes(
            {
                "format": FORMAT,
                "id": str(header.id),
                "organization": str(header.organization_id) if header.organization_id else None,
                "action": header.action,
                "subject_type": header.subject_type,
                "subject_id": str(header.subject_id),
                "actor_kind": header.actor_kind,
                "actor_ref": header.actor_ref,
                "reason_code": header.reason_code,
                "request_id": header.request_id,
                "trace_id": header.trace_id,
                "at": header.at.astimezone(UTC).isoformat(timespec="microseconds"),
                "payload_sha256": payload_sha256.hex(),
            }
        )
    ).digest()


class EntryText(NamedTuple):
    """An entry's header as text, as a query can give it: ids in their usual form, `at` in UTC with six digits."""

    id: str
    organization_id: str | None
    action: str
    subject_type: str
    subject_id: str
    actor_kind: str
    actor_ref: str
    reason_code: str
    request_id: str
    trace_id: str
    at: str


def entry_hash_of_text(text: EntryText, *, payload_sha256: bytes) -> bytes:
    """The same bytes as `entry_hash`, ten times as fast: for those who check millions (a test compares)."""
    organization = f'"{text.organization_id}"' if text.organization_id else "null"
    written = (
        f'{{"action":{quoted(text.action)},"actor_kind":{quoted(text.actor_kind)},"actor_ref":{quoted(text.actor_ref)}'
        f',"at":"{text.at}","format":"{FORMAT}","id":"{text.id}","organization":{organization}'
        f',"payload_sha256":"{payload_sha256.hex()}","reason_code":{quoted(text.reason_code)}'
        f',"request_id":{quoted(text.request_id)},"subject_id":"{text.subject_id}"'
        f',"subject_type":{quoted(text.subject_type)},"trace_id":{quoted(text.trace_id)}}}'
    )
    return sha256(written.encode()).digest()
