"""Ledger entries: `ledger_append` inserts one, `ledger_entry_build` makes one for a caller that inserts several rows at
once. Both raise instead of leaving an entry out: no entry, no change."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from secrets import token_bytes
from typing import Any
from uuid import UUID

from django.db import connection

from governance.ledger.errors import LedgerOutsideTransaction
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import ACTIONS
from governance.ledger.rules.entry import entries_joined
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
    entries_joined([entry])
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
    """The row, unsaved, for callers that insert several rows in one statement (`insert_together`). There it is joined
    with the moves before it, and gets its hashes.

    `actor_ref`: the actor's reference, if the caller has it already; otherwise it is looked up."""
    # A name that is not registered would have no wording, and could later get a second meaning.
    if action not in ACTIONS:
        raise ValueError(f"ledger action {action} is not registered")
    trace = current_trace()
    return new_row(
        LedgerEntry,
        id=uuid7(),
        organization_id=organization_id,
        action=action,
        subject_type=subject_type,
        subject_id=subject_id,
        actor_kind=actor.kind.value,
        actor_ref=actor_reference(actor) if actor_ref is None else actor_ref,
        reason_code=reason_code,
        request_id=trace.request_id if trace else "",
        trace_id=trace.trace_id if trace else "",
        payload=dict(payload),
        at=at,
    )


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
