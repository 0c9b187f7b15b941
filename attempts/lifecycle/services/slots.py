"""Slots in the caps of a contract: taken with the attempt, given back when it ends."""

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

TRIES = 3  # a cap that looks full may be one whose slots others hold by lock and give back at once


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
    """The use of a key that must still be the first: of this generation, under this name of a lock."""

    lock: str
    scope: str
    key: str
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """What an attempt needs to be taken in: its key, unless `guard` is None, and its slots."""

    organization_id: UUID
    attempt_id: UUID
    caps: list[Cap]
    guard: KeyGuard | None = None

    def parameters(self, *, keeps: bool) -> tuple[Any, ...]:
        """As `RESERVE` and `RESERVATION_GATE` take them."""
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
    """`known`: the key has a record, and no slot was taken. `busy`: the first cap that is full; again, none taken."""

    known: bool = False
    busy: SlotScope | None = None


def caps_for(
    *, document: Mapping[str, Any], organization_id: UUID, organization_cap: int, slug: str, key: str, context: str
) -> list[Cap]:
    """The caps that this request falls under; a limit of null means none."""
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
    """In the caller's transaction. All slots or none. `keeps` false: the attempt ends in this transaction too, and
    holds its slots by their locks alone.

    Tried again when a slot is missing: the first statement does not see what was committed while it ran; the next one
    sees it, the key's record too, and the locks of the first one are still held."""
    if claim.guard is None and not claim.caps:
        return Reserved()
    parameters, missing = claim.parameters(keeps=keeps), ""
    for _ in range(TRIES):
        ((locked, known, busy, taken),) = fetch(RESERVE, parameters)
        if not locked:
            raise KeyInProgress
        if known:
            return Reserved(known=True)
        missing = busy or (_lost(claim.caps, taken or ()) if keeps else "")
        if not missing:
            return Reserved()
        if taken:  # some of them: the others went to somebody who has committed since
            slots_release(attempt_id=claim.attempt_id)
    return Reserved(busy=SlotScope(missing))


def slots_take(*, organization_id: UUID, attempt_id: UUID, caps: list[Cap]) -> SlotScope | None:
    """All of them, or none: then the first cap that is full."""
    return slots_reserve(Claim(organization_id, attempt_id, caps)).busy


def _lost(caps: list[Cap], taken: Collection[str]) -> str:
    return next((cap.scope.value for cap in caps if cap.scope.value not in taken), "")


def slots_release(*, attempt_id: UUID) -> None:
    Slot.objects.filter(attempt_id=attempt_id).delete()
