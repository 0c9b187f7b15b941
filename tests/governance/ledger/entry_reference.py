"""The hash of a ledger entry as its format says it, through canonical JSON: what the fast one is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from uuid import UUID

from governance.ledger.rules.entry import FORMATS, canonical_bytes


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
    format: int = 1
    earlier: Sequence[str] | None = None


def entry_hash(*, header: EntryHeader, payload_sha256: bytes) -> bytes:
    """SHA-256 over the canonical JSON of the header and the payload's hash."""
    moves = {"earlier": list(header.earlier or ())} if header.format > 1 else {}
    return sha256(
        canonical_bytes(
            moves
            | {
                "format": FORMATS[header.format],
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
