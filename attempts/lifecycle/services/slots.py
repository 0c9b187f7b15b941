"""Slots: which caps an attempt counts for, taking and giving back its slot, and waiting for one.

An attempt has a slot while it may be executed. What waits, for people, for a slot or for a retry, has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from attempts.intake.errors import KeyInProgress
from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.freed import slots_freed, slots_wanted
from attempts.lifecycle.services.transition import entry_build
from attempts.lifecycle.sql import RESERVE
from attempts.lifecycle.states import SlotScope
from governance.ledger.models import LedgerEntry
from governance.sql.statements import fetch
from reasoncodes.base.actors import Actor

NO_CAP = -1
# Another transaction may be taking the last slots and give them back.
TRIES = 3
# Seconds that an attempt waits for a slot under a contract that refuses instead of queueing: it cannot be refused any
# more, because people have released it, or because nobody would hear the refusal.
RELEASED_WAITS = 3_600
STEP_WAITS = 30 * 86_400  # a workflow step: the run's own deadline ends the wait before


@dataclass(frozen=True, slots=True)
class Cap:
    """`limit` None: nothing is capped, but the attempt counts for those that are. `name`: the setting that says it."""

    scope: SlotScope
    subject: str
    limit: int | None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Busy:
    """A cap that is full."""

    cap: Cap
    used: int

    @property
    def facts(self) -> dict[str, Any]:
        return {"name": self.cap.name, "limit": self.cap.limit, "used": self.used}


@dataclass(frozen=True, slots=True)
class KeyGuard:
    """A key that nobody may have used in this generation, and the name of its lock."""

    lock: str
    scope: str
    key: str
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Subjects:
    """What an attempt counts for besides its organization."""

    workflow: str
    context: str = ""
    key: str = ""
    person: str = ""
    """Who answers for the service that asks; empty if nobody does."""
    regions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, *, slug: str, context: str, key: str, person: UUID | None = None, regions: Sequence[str] = ()
    ) -> "Subjects":
        return cls(slug, _digest(context), _digest(key), str(person or ""), tuple(sorted(regions)))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest() if text else ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an attempt needs to be admitted: its key, unless `guard` is None, and free places in its caps. `subjects`
    None: it takes no slot."""

    organization_id: UUID
    attempt_id: UUID
    caps: list[Cap]
    guard: KeyGuard | None = None
    subjects: Subjects | None = None

    def parameters(self, *, keeps: bool = True) -> tuple[Any, ...]:
        """The parameters of `RESERVE` and `RESERVATION_CONDITION`."""
        guard = self.guard or KeyGuard("", "", "")
        subjects = self.subjects or Subjects("")
        return (
            *(guard.lock or None, self.organization_id, guard.scope, guard.key, str(guard.generation)),
            [cap.scope.value for cap in self.caps],
            [cap.subject for cap in self.caps],
            [str(NO_CAP if cap.limit is None else cap.limit) for cap in self.caps],
            *(self.attempt_id, keeps and self.subjects is not None),
            *(subjects.workflow, subjects.context, subjects.key),
        )

    def busy(self, said: str) -> Busy:
        """`said`: number of the cap and use, as the statement returns them."""
        number, used = said.split()
        return Busy(self.caps[int(number) - 1], int(used))


@dataclass(frozen=True, slots=True)
class Reserved:
    """`known`: the key has a record. `busy`: the first cap that is full. In both cases nothing was taken."""

    known: bool = False
    busy: Busy | None = None


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


def caps_for(*, document: Mapping[str, Any], organization_cap: int, subjects: Subjects) -> list[Cap]:
    """All that the attempt counts for, each with its cap. One order for all: the narrowest first.

    Person and regions only where they are capped: a slot has them anyway, through its attempt. Whoever has no cap may
    come before or after those that have one, so it needs no lock of theirs."""
    limits = document["limits"]
    per_user, per_region = limits.get("per_user"), limits.get("per_region")
    per_tenant = limits["per_tenant"]
    own = per_tenant is not None and per_tenant < organization_cap
    wanted = [
        Cap(SlotScope.KEY, subjects.key, limits["per_key"], "per_key"),
        Cap(SlotScope.CONTEXT, subjects.context, limits["per_context"], "per_context"),
        Cap(SlotScope.WORKFLOW, subjects.workflow, limits["per_workflow"], "per_workflow"),
        *([Cap(SlotScope.USER, subjects.person, per_user, "per_user")] if per_user is not None else []),
    ]
    tenant = Cap(SlotScope.TENANT, "", *((per_tenant, "per_tenant") if own else (organization_cap, "max_concurrency")))
    regions = subjects.regions if per_region is not None else ()
    wide = [Cap(SlotScope.REGION, region, per_region, "per_region") for region in regions]
    return [*(cap for cap in wanted if cap.subject), tenant, *wide]


def holds_cap(limit: int) -> Cap:
    return Cap(SlotScope.HOLDS, "", limit, "max_open_holds")


def claim_of(attempt: Attempt) -> Claim:
    """The claim of a stored attempt, by its contract's documents and the organization's cap as it is now."""
    documents, slug = documents_of(attempt), attempt.workflow_slug
    policy = documents["idempotency_key_policy"]
    document = documents["concurrency_and_locks"]
    capped = document["limits"].get("per_user") is not None
    subjects = Subjects.of(
        slug=slug,
        context=attempt.patient_context_ref,
        key=key_counted(policy, key=attempt.idempotency_key, slug=slug, caller_id=attempt.caller_id),
        # Asked for only where it counts: it is a query.
        person=attempt.caller.responsible_id if capped else None,
        regions=attempt.organization.regions,
    )
    caps = caps_for(
        document=document,
        organization_cap=attempt.organization.max_concurrency,
        subjects=subjects,
    )
    return Claim(attempt.organization_id, attempt.id, caps, subjects=subjects)


def slots_reserve(claim: Claim, *, keeps: bool = True) -> Reserved:
    """Reserves key and slot in the caller's transaction, or neither. `keeps` false: the attempt ends in this
    transaction too, so the advisory locks are enough and no row is inserted."""
    if claim.guard is None and not claim.caps:
        return Reserved()
    said = ""
    # Locks that the first try got belong to the transaction, so they are kept and taken again.
    for _ in range(TRIES):
        ((locked, known, said),) = fetch(RESERVE, claim.parameters(keeps=keeps))
        if not locked:
            raise KeyInProgress
        if known or not said:
            return Reserved(known=known)
        busy = claim.busy(said)
        if busy.used >= (busy.cap.limit or 0):
            break
    return Reserved(busy=claim.busy(said))


def slot_take(attempt: Attempt) -> Busy | None:
    """Takes the slot of a stored attempt that has none and is locked by the caller; None if it got one."""
    return slots_reserve(claim_of(attempt)).busy


def slots_release(*, attempt_id: UUID) -> None:
    """The attempt stays, but waits now."""
    Slot.objects.filter(attempt_id=attempt_id).delete()
    slots_freed()


def wait_seconds(rules: Mapping[str, Any], *, is_step: bool) -> int:
    """How long an attempt that cannot be refused waits for a slot. `rules`: its concurrency_and_locks document."""
    if rules["when_busy"] == "queue":
        return int(rules["queue_timeout_seconds"])
    return STEP_WAITS if is_step else RELEASED_WAITS


def queue_enter(attempt: Attempt, *, timeout_seconds: int, actor: Actor, at: datetime) -> LedgerEntry:
    """Lets the attempt wait for a slot and builds the ledger entry. The caller inserts it."""
    # Must come before the transition to approved, which makes an attempt eligible unless it is queued.
    attempt.queued_until = at + timedelta(seconds=timeout_seconds)
    slots_wanted()
    until = {"queued_until": attempt.queued_until.isoformat()}
    return entry_build(attempt, "attempt.queued", actor=actor, at=at, payload=until)


def slot_or_queue(attempt: Attempt, *, actor: Actor, at: datetime) -> LedgerEntry | None:
    """Takes the slot of an attempt that may be executed from now on, or lets it wait for one."""
    if attempt.runtime_mode == "shadow" or slot_take(attempt) is None:
        return None
    rules = documents_of(attempt)["concurrency_and_locks"]
    seconds = wait_seconds(rules, is_step=attempt.origin_step is not None)
    return queue_enter(attempt, timeout_seconds=seconds, actor=actor, at=at)
