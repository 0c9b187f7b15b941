"""Slots of the concurrency caps: which caps apply, reserving slots together with the key, releasing them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from attempts.intake.errors import KeyInProgress
from attempts.lifecycle.models import Slot
from attempts.lifecycle.sql import RESERVE
from attempts.lifecycle.states import SlotScope
from governance.sql.statements import fetch

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
        """The parameters of `RESERVE` and `RESERVATION_GATE`."""
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
