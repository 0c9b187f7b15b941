"""State changes of an attempt: the change, its AttemptTransition and its ledger entry, written together.

No other module writes the state of an attempt. An end gives its slot back.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django_fsm import TransitionNotAllowed

from attempts.lifecycle.hooks import attempt_moved, attempt_stopped, move_announce
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.services.freed import slots_freed
from attempts.lifecycle.states import FINAL_STATES, AttemptState, RuntimeMode
from governance.evidence.services.at_end import evidence_when_ended
from governance.evidence.states import EvidenceKind
from governance.ledger.models import LedgerEntry
from governance.ledger.services import actor_reference, ledger_entry_build
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor, ActorKind
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

# All columns that a state change can touch. One that is missing here would be changed in memory and not stored.
STATE_FIELDS = ("state", "reason_code", "ended_at", "next_eligible_at", "lease_expires_at", "queued_until")


def transition_build(
    attempt: Attempt, verb: str, *, actor: Actor, at: datetime, payload: Mapping[str, Any] | None = None, **kwargs: Any
) -> tuple[AttemptTransition, LedgerEntry]:
    """Changes the state in memory and builds the two rows. The caller inserts them."""
    source = attempt.state
    # The clocks of two machines differ, and what ends an attempt does not come before it. The clock tells deadlines.
    at = at if actor.kind is ActorKind.CLOCK else max(at, attempt.created_at)
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
    """Sets the columns that follow from the new state. Only a released attempt that is no shadow may be leased."""
    released = attempt.state == AttemptState.APPROVED and attempt.runtime_mode != RuntimeMode.SHADOW
    attempt.next_eligible_at = at if released and attempt.queued_until is None else None
    if attempt.state in FINAL_STATES:
        attempt.ended_at = at
        attempt.lease_expires_at = None
        attempt.queued_until = None


def transition_apply(
    attempt: Attempt,
    verb: str,
    *,
    actor: Actor,
    at: datetime,
    tell: bool = True,
    then: Sequence[LedgerEntry] = (),
    **kwargs: Any,
) -> None:
    """Changes the state of a stored and locked attempt. `tell` false: handlers are not called, because the caller is
    the engine that they would signal. `then`: entries of what follows the change."""
    # The row must be locked: the state machine only checks the value in memory, so that without the lock two
    # transactions could both leave the same state.
    row, entry = transition_build(attempt, verb, actor=actor, at=at, **kwargs)
    attempt.save(update_fields=[*STATE_FIELDS])
    insert_together([row], [entry, *then])
    move_announce(attempt.id)
    if attempt.state in FINAL_STATES:
        Slot.objects.filter(attempt_id=attempt.id).delete()
        slots_freed()
        if attempt.origin_step is None:  # an attempt of a workflow step is in the bundle of its run
            evidence_when_ended(
                kind=EvidenceKind.ATTEMPT,
                subject_id=attempt.id,
                contract_id=attempt.contract_id,
                risk_tier=attempt.risk_tier,
            )
    if row.from_state == AttemptState.APPROVED and attempt.state != AttemptState.COMPLETED:
        # It may be held again (`hold`): then its open review ends with it.
        attempt_stopped(attempt, actor=actor, at=at)
    if tell:
        attempt_moved(attempt, old=row.from_state, actor=actor, at=at)


def transition_join(
    attempt: Attempt, verb: str, pending: Pending, *, actor: Actor, at: datetime, **kwargs: Any
) -> None:
    """As `transition_apply`, but leaves all rows in `pending`. Handlers are not called: the caller is the engine."""
    row, entry = transition_build(attempt, verb, actor=actor, at=at, **kwargs)
    is_new = pending.holds(attempt)
    pending.change(attempt, STATE_FIELDS)
    pending.add(row, entry)
    if not is_new:  # nobody can wait for an attempt that is not stored yet
        move_announce(attempt.id)
    if attempt.state in FINAL_STATES and not is_new:
        pending.remove(Slot, "attempt_id", attempt.id)
        slots_freed()


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
