"""Places in the caps of a contract: taken with the attempt, given back when it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from attempts.models import Slot
from attempts.states import SlotScope
from governance.statement import fetch

TRIES = 3
# The first free number of each cap. Nobody waits for somebody else's uncommitted place: a number that another
# transaction is taking is passed over.
FREE = """
    SELECT 1 + (place + start.at) % wanted.cap AS number
    FROM (SELECT floor(random() * wanted.cap)::int AS at) AS start, generate_series(0, wanted.cap - 1) AS place
    WHERE NOT EXISTS (
        SELECT 1 FROM attempts_slot held
        WHERE held.scope = wanted.scope AND held.subject = wanted.subject
          AND held.number = 1 + (place + start.at) % wanted.cap
    )
    AND pg_try_advisory_xact_lock(
        hashtextextended(wanted.scope || wanted.subject, 1 + (place + start.at) % wanted.cap)
    )
    LIMIT 1
"""
TAKE = f"""
INSERT INTO attempts_slot (id, organization_id, scope, subject, number, attempt_id)
SELECT gen_random_uuid(), $1, wanted.scope, wanted.subject, free.number, $2
FROM unnest($3::text[], $4::text[], $5::text[]::int[]) AS wanted (scope, subject, cap)
CROSS JOIN LATERAL ({FREE}) free
ON CONFLICT (scope, subject, number) DO NOTHING
RETURNING scope
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Cap:
    scope: SlotScope
    subject: str
    limit: int

    @property
    def digest(self) -> str:
        return sha256(f"{self.scope}\0{self.subject}".encode()).hexdigest()


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


def slots_take(*, organization_id: UUID, attempt_id: UUID, caps: list[Cap]) -> SlotScope | None:
    """All of them, or none: then the first cap that is full. A lost race for a place is tried again."""
    if not caps:
        return None
    for _ in range(TRIES):
        missing = _take(organization_id, attempt_id, caps)
        if not missing:
            return None
        Slot.objects.filter(attempt_id=attempt_id).delete()
    return missing[0].scope


def slots_release(*, attempt_id: UUID) -> None:
    Slot.objects.filter(attempt_id=attempt_id).delete()


def _take(organization_id: UUID, attempt_id: UUID, caps: list[Cap]) -> list[Cap]:
    taken = {row[0] for row in fetch(TAKE, (organization_id, attempt_id, *caps_columns(caps)))}
    return [cap for cap in caps if cap.scope.value not in taken]


def caps_columns(caps: list[Cap]) -> tuple[list[str], list[str], list[str]]:
    """Scopes, subjects and limits, as the statements take them."""
    return [cap.scope.value for cap in caps], [cap.digest for cap in caps], [str(cap.limit) for cap in caps]
