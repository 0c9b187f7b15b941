"""State changes of an attempt: the change, its AttemptTransition and its ledger entry, written together.

No other module writes the state of an attempt. Its slots are taken and released here; so is entering the queue.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django_fsm import TransitionNotAllowed

from attempts.intake.errors import KeyInProgress
from attempts.lifecycle.hooks import attempt_moved, attempt_stopped, move_announce
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.sql import RESERVE
from attempts.lifecycle.states import FINAL_STATES, AttemptState, RuntimeMode, SlotScope
from governance.evidence.services.at_end import evidence_when_ended
from governance.evidence.states import EvidenceKind
from governance.ledger.models import LedgerEntry
from governance.ledger.services import actor_reference, ledger_entry_build
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import fetch, new_row
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import WrongState
from reasoncodes.base.ids import uuid7

# A cap can look full because other transactions have locked its last numbers and give them back at once. Without
# another try a request would be denied although there are free slots.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Cap:
    scope: SlotScope
    subject: str
    limit: int

    @property
    def digest(self) -> str:
        return sha256(f"{self.scope}\0{self.subject}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyGuard:
    """A key that nobody may have used in this generation, and the name of its lock."""

    lock: str
    scope: str
    key: str
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """What an attempt needs to be admitted: its key, unless `guard` is None, and its slots."""

    organization_id: UUID
    attempt_id: UUID
    caps: list[Cap]
    guard: KeyGuard | None = None

    def parameters(self, *, keeps: bool) -> tuple[Any, ...]:
        """The parameters of `RESERVE` and `RESERVATION_CONDITION`."""
        guard = self.guard or KeyGuard("", "", "")
        return (
            *(guard.lock or None, self.organization_id, guard.scope, guard.key, str(guard.generation)),
            [cap.scope.value for cap in self.caps],
            [cap.digest for cap in self.caps],
            [str(cap.limit) for cap in self.caps],
            *(self.attempt_id, keeps),
        )


@dataclass(frozen=True, slots=True)
class Reserved:
    """`known`: the key has a record. `busy`: the first cap that is full. In both cases no slot was taken."""

    known: bool = False
    busy: SlotScope | None = None


def key_scope(policy: Mapping[str, Any], *, slug: str, caller_id: UUID | None) -> str:
    """Where a key is unique, by the contract's key policy."""
    scopes = {"tenant": "tenant", "contract": f"contract:{slug}", "caller": f"caller:{caller_id}"}
    return scopes[policy["scope"]]


def key_counted(policy: Mapping[str, Any], *, key: str, slug: str, caller_id: UUID | None) -> str:
    """The key as `per_key` counts it, within its scope: two callers may use the same key where keys are each caller's
    own. Empty if keys are not deduplicated."""
    if not key or policy["mode"] != "dedupe":
        return ""
    return f"{key_scope(policy, slug=slug, caller_id=caller_id)}\0{key}"


def caps_for(
    *, document: Mapping[str, Any], organization_id: UUID, organization_cap: int, slug: str, key: str, context: str
) -> list[Cap]:
    """The caps that apply to this request; a limit of null means no cap."""
    limits, tenant = document["limits"], str(organization_id)
    per_tenant = limits["per_tenant"]
    wanted = [
        (SlotScope.KEY, f"{tenant}\0{key}" if key else "", limits["per_key"]),
        (SlotScope.CONTEXT, f"{tenant}\0{context}" if context else "", limits["per_context"]),
        (SlotScope.WORKFLOW, f"{tenant}\0{slug}", limits["per_workflow"]),
        (SlotScope.TENANT, tenant, organization_cap if per_tenant is None else min(per_tenant, organization_cap)),
    ]
    return [Cap(scope, subject, limit) for scope, subject, limit in wanted if subject and limit is not None]


def slots_reserve(claim: Claim, *, keeps: bool = True) -> Reserved:
    """Reserves key and slots in the caller's transaction, all slots or none. `keeps` false: the attempt ends in this
    transaction too, so the advisory locks are enough and no rows are inserted."""
    if claim.guard is None and not claim.caps:
        return Reserved()
    parameters, missing = claim.parameters(keeps=keeps), ""
    # A second statement sees what was committed while the first one ran, also the key's record. Locks that the first
    # one got belong to the transaction, so they are kept and taken again.
    for _ in range(TRIES):
        ((locked, known, busy, taken),) = fetch(RESERVE, parameters)
        if not locked:
            raise KeyInProgress
        if known:
            return Reserved(known=True)
        missing = busy or (_lost(claim.caps, taken or ()) if keeps else "")
        if not missing:
            return Reserved()
        if taken:  # only some: another transaction committed a slot that this statement could not see
            slots_release(attempt_id=claim.attempt_id)
    return Reserved(busy=SlotScope(missing))


def slots_take(*, organization_id: UUID, attempt_id: UUID, caps: list[Cap]) -> SlotScope | None:
    """Takes a slot of every cap, or none: then it returns the first cap that is full."""
    return slots_reserve(Claim(organization_id, attempt_id, caps)).busy


def _lost(caps: list[Cap], taken: Collection[str]) -> str:
    return next((cap.scope.value for cap in caps if cap.scope.value not in taken), "")


def slots_release(*, attempt_id: UUID) -> None:
    Slot.objects.filter(attempt_id=attempt_id).delete()


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
        slots_release(attempt_id=attempt.id)
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
    """Lets the attempt wait for a slot and builds the ledger entry. The caller inserts it."""
    # Must come before the transition to approved, which makes an attempt eligible unless it is queued.
    attempt.queued_until = at + timedelta(seconds=timeout_seconds)
    until = {"queued_until": attempt.queued_until.isoformat()}
    return entry_build(attempt, "attempt.queued", actor=actor, at=at, payload=until)


def queue_if_no_slot(attempt: Attempt, *, actor: Actor, at: datetime) -> LedgerEntry | None:
    """Queues an attempt that people have just approved, if it has no slot because the caps were full at intake."""
    rules = documents_of(attempt)["concurrency_and_locks"]
    if attempt.runtime_mode == RuntimeMode.SHADOW or rules["when_busy"] != "queue":
        return None
    if Slot.objects.filter(attempt_id=attempt.id).exists():
        return None
    return queue_enter(attempt, timeout_seconds=rules["queue_timeout_seconds"], actor=actor, at=at)
