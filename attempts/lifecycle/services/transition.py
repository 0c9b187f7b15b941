"""The only place that changes an attempt's state: the move, its AttemptTransition and its ledger entry, together."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django_fsm import TransitionNotAllowed

from attempts.lifecycle.adapters import move_announce
from attempts.lifecycle.hooks import attempt_moved
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.slots import slots_release
from attempts.lifecycle.states import FINAL_STATES, AttemptState, RuntimeMode
from governance.ledger.models import LedgerEntry
from governance.ledger.services import actor_reference, ledger_entry_build
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import WrongState
from reasoncodes.base.ids import uuid7

ACTION_OF = {
    "deduplicate": "attempt.deduplicated",
    "hold": "attempt.held",
    "approve": "attempt.approved",
    "deny": "attempt.denied",
    "complete": "attempt.completed",
    "quarantine": "attempt.quarantined",
}

STATE_FIELDS = ("state", "reason_code", "ended_at", "next_eligible_at", "lease_expires_at", "queued_until")


def transition_build(
    attempt: Attempt, verb: str, *, actor: Actor, at: datetime, payload: Mapping[str, Any] | None = None, **kwargs: Any
) -> tuple[AttemptTransition, LedgerEntry]:
    """Moves the attempt in memory and builds the two rows; the caller inserts them with the rest."""
    source = attempt.state
    try:
        getattr(attempt, verb)(**kwargs)
    except TransitionNotAllowed as error:
        raise WrongState(f"An attempt that is {attempt.state} cannot do this.") from error
    _consequences(attempt, at)
    row = new_row(
        AttemptTransition,
        id=uuid7(),
        attempt_id=attempt.id,
        from_state=source,
        to_state=attempt.state,
        reason_code=attempt.reason_code,
        actor_kind=actor.kind.value,
        actor_ref=actor_reference(actor),
        at=at,
    )
    entry = entry_build(attempt, ACTION_OF[verb], actor=actor, at=at, payload=payload, reason_code=attempt.reason_code)
    return row, entry


def _consequences(attempt: Attempt, at: datetime) -> None:
    """What a state means for leasing: only a released attempt that is no shadow may be leased."""
    released = attempt.state == AttemptState.APPROVED and attempt.runtime_mode != RuntimeMode.SHADOW
    attempt.next_eligible_at = at if released and attempt.queued_until is None else None
    if attempt.state in FINAL_STATES:
        attempt.ended_at = at
        attempt.lease_expires_at = None
        attempt.queued_until = None


def transition_apply(
    attempt: Attempt, verb: str, *, actor: Actor, at: datetime, tell: bool = True, **kwargs: Any
) -> None:
    """For an attempt that is stored and locked. `tell` false: the caller is the one that handlers would tell."""
    row, entry = transition_build(attempt, verb, actor=actor, at=at, **kwargs)
    attempt.save(update_fields=[*STATE_FIELDS])
    insert_together([row], [entry])
    move_announce(attempt.id)
    if attempt.state in FINAL_STATES:
        slots_release(attempt_id=attempt.id)
    if tell:
        attempt_moved(attempt, old=row.from_state, actor=actor, at=at)


def transition_join(
    attempt: Attempt, verb: str, pending: Pending, *, actor: Actor, at: datetime, **kwargs: Any
) -> None:
    """As `transition_apply`, with what its caller writes together. Handlers are not told: the caller is the engine."""
    row, entry = transition_build(attempt, verb, actor=actor, at=at, **kwargs)
    is_new = pending.holds(attempt)
    pending.change(attempt, STATE_FIELDS)
    pending.add(row, entry)
    if not is_new:  # of one that was not there before, nobody can wait for news
        move_announce(attempt.id)
    if attempt.state in FINAL_STATES and not is_new:
        pending.remove(Slot, "attempt_id", attempt.id)


def entry_build(
    attempt: Attempt,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    payload: Mapping[str, Any] | None = None,
    reason_code: str = "",
) -> LedgerEntry:
    return ledger_entry_build(
        action=action,
        organization_id=attempt.organization_id,
        subject_type="attempt",
        subject_id=attempt.id,
        actor=actor,
        at=at,
        payload=payload or {},
        reason_code=reason_code,
    )


def queue_enter(attempt: Attempt, *, timeout_seconds: int, actor: Actor, at: datetime) -> LedgerEntry:
    """Before the transition to approved, which then does not make it eligible. The caller inserts the entry."""
    attempt.queued_until = at + timedelta(seconds=timeout_seconds)
    until = {"queued_until": attempt.queued_until.isoformat()}
    return entry_build(attempt, "attempt.queued", actor=actor, at=at, payload=until)


def queue_if_no_slot(attempt: Attempt, *, actor: Actor, at: datetime) -> LedgerEntry | None:
    """For a review that ends with approval: the attempt was taken in without a place if the caps were full then."""
    rules = documents_of(attempt)["concurrency_and_locks"]
    if attempt.runtime_mode == RuntimeMode.SHADOW or rules["when_busy"] != "queue":
        return None
    if Slot.objects.filter(attempt_id=attempt.id).exists():
        return None
    return queue_enter(attempt, timeout_seconds=rules["queue_timeout_seconds"], actor=actor, at=at)
