"""Ledger entries: `ledger_append` inserts one, `ledger_entry_build` makes one for a caller that inserts several rows at
once. Both raise instead of leaving an entry out: no entry, no change."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_bytes
from typing import Any
from uuid import UUID

from django.db import connection

from governance.ledger.errors import LedgerOutsideTransaction
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import ACTIONS
from governance.ledger.rules.entry import EntryText, entry_hash_of_text, payload_hash
from governance.people.models import PersonReference
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import current_trace


def ledger_append(
    *,
    action: str,
    organization_id: UUID | None,
    subject_type: str,
    subject_id: UUID,
    actor: Actor,
    at: datetime,
    payload: Mapping[str, Any],
    reason_code: str = "",
) -> LedgerEntry:
    """Insert one entry in the caller's transaction."""
    # Outside a transaction the entry would be committed at once, and would stay if the change it describes failed.
    if not connection.in_atomic_block:
        raise LedgerOutsideTransaction(action)
    entry = ledger_entry_build(
        action=action,
        organization_id=organization_id,
        subject_type=subject_type,
        subject_id=subject_id,
        actor=actor,
        at=at,
        payload=payload,
        reason_code=reason_code,
    )
    entry.save()
    return entry


def ledger_entry_build(
    *,
    action: str,
    organization_id: UUID | None,
    subject_type: str,
    subject_id: UUID,
    actor: Actor,
    at: datetime,
    payload: Mapping[str, Any],
    reason_code: str = "",
    actor_ref: str | None = None,
) -> LedgerEntry:
    """The row with its hashes, unsaved, for callers that insert several rows in one statement (`insert_together`).
    `actor_ref`: the actor's reference, if the caller has it already; otherwise it is looked up."""
    # A name that is not registered would have no wording, and could later get a second meaning.
    if action not in ACTIONS:
        raise ValueError(f"ledger action {action} is not registered")
    # The nonce salts the payload's hash: without it a short payload could be guessed from the hash after its erasure.
    trace, nonce, entry_id = current_trace(), token_bytes(16), uuid7()
    hashed = payload_hash(payload=payload, nonce=nonce)
    # One set of values for the row and for the hash, so that the two cannot differ.
    said = {
        "action": action,
        "subject_type": subject_type,
        "actor_kind": actor.kind.value,
        "actor_ref": actor_reference(actor) if actor_ref is None else actor_ref,
        "reason_code": reason_code,
        "request_id": trace.request_id if trace else "",
        "trace_id": trace.trace_id if trace else "",
    }
    text = EntryText(
        id=str(entry_id),
        organization_id=str(organization_id) if organization_id else None,
        subject_id=str(subject_id),
        at=_moment(at),
        **said,
    )
    return new_row(
        LedgerEntry,
        id=entry_id,
        organization_id=organization_id,
        subject_id=subject_id,
        at=at,
        **said,
        payload=dict(payload),
        nonce=nonce,
        payload_sha256=hashed,
        sha256=entry_hash_of_text(text, payload_sha256=hashed),
    )


# All entries of a transaction have the same moment; its text is made once.
_latest: tuple[datetime | None, str] = (None, "")


def _moment(at: datetime) -> str:
    # Replaced as a whole: with two variables, one thread could combine its moment with another thread's text.
    global _latest
    latest = _latest
    if latest[0] is not at:
        latest = _latest = (at, at.astimezone(UTC).isoformat(timespec="microseconds"))
    return latest[1]


def actor_reference(actor: Actor) -> str:
    """How the record names the actor: a service by its id, a person by a commitment, the clock and the system not at
    all."""
    if actor.kind is ActorKind.PERSON:
        return person_commitment(user_id=_id(actor))
    return str(actor.id) if actor.kind is ActorKind.SERVICE else ""


def person_commitment(*, user_id: UUID) -> str:
    """SHA-256 over a salt and the user's id. The salt is in the person's `PersonReference`, which is made on first
    use."""
    row = PersonReference.objects.filter(user_id=user_id).first()
    if row is None:
        # Two first uses at once: the primary key lets one row in, and `get_or_create` returns it to both. Two salts
        # would give one person two names.
        salt = token_bytes(32)
        row, _ = PersonReference.objects.get_or_create(
            user_id=user_id,
            defaults={"salt": salt, "commitment": sha256(salt + str(user_id).encode()).hexdigest()},
        )
    return row.commitment


def _id(actor: Actor) -> UUID:
    if actor.id is None:
        raise ValueError("a person without an id cannot act")
    return actor.id
