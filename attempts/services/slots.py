"""Places in the caps of a contract: taken with the attempt, given back when it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from attempts.errors import KeyInProgress
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


# The key's lock and latest record, and if there is none the places, in one round trip. $1 lock (empty: no key to
# guard), $2 organization, $3 scope, $4 key, $5 attempt, $6 whether the places are kept: what ends with the transaction
# has them by their locks alone. $7 to $9 the caps.
TAKE_FOR_KEY = f"""
WITH held AS MATERIALIZED (
    SELECT $1::text IS NULL OR pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS locked
),
known AS MATERIALIZED (
    SELECT EXISTS (
        SELECT 1 FROM attempts_idempotencyrecord
        WHERE $1::text IS NOT NULL AND organization_id = $2 AND scope = $3 AND key = $4
    ) AS known
),
places AS MATERIALIZED (
    SELECT wanted.scope, wanted.subject, free.number
    FROM held CROSS JOIN known CROSS JOIN unnest($7::text[], $8::text[], $9::text[]::int[])
        AS wanted (scope, subject, cap)
    CROSS JOIN LATERAL ({FREE}) free
    WHERE held.locked AND NOT known.known
),
taken AS (
    INSERT INTO attempts_slot (id, organization_id, scope, subject, number, attempt_id)
    SELECT gen_random_uuid(), $2, places.scope, places.subject, places.number, $5 FROM places WHERE $6
    ON CONFLICT (scope, subject, number) DO NOTHING RETURNING scope
)
SELECT held.locked, known.known,
    CASE WHEN $6 THEN (SELECT array_agg(scope) FROM taken) ELSE (SELECT array_agg(scope) FROM places) END
FROM held CROSS JOIN known
"""  # noqa: S608

KNOWN = "SELECT 1 FROM attempts_idempotencyrecord WHERE organization_id = $1 AND scope = $2 AND key = $3 LIMIT 1"


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


@dataclass(frozen=True, slots=True)
class Place:
    """`known`: the key has a record, and no place was taken. `busy`: the first cap that is full."""

    known: bool
    busy: SlotScope | None = None


def place_take(
    *, lock: str | None, organization_id: UUID, scope: str, key: str, attempt_id: UUID, caps: list[Cap], keeps: bool
) -> Place:
    """For one that comes in its caller's transaction. `keeps` false: the attempt ends in it too. A record that was
    written and a place that was taken while the statement ran are not seen by it: where a place is missing, both are
    looked for again, now that the key is locked."""
    given = (lock, organization_id, scope, key, attempt_id, keeps, *caps_columns(caps))
    ((locked, known, taken),) = fetch(TAKE_FOR_KEY, given)
    if not locked:
        raise KeyInProgress
    if known or len(taken or ()) == len(caps):
        return Place(known)
    slots_release(attempt_id=attempt_id)
    if lock is not None and fetch(KNOWN, (organization_id, scope, key)):
        return Place(known=True)
    busy = slots_take(organization_id=organization_id, attempt_id=attempt_id, caps=caps)
    if busy is None and not keeps:
        slots_release(attempt_id=attempt_id)
    return Place(known=False, busy=busy)


def slots_release(*, attempt_id: UUID) -> None:
    Slot.objects.filter(attempt_id=attempt_id).delete()


def _take(organization_id: UUID, attempt_id: UUID, caps: list[Cap]) -> list[Cap]:
    taken = {row[0] for row in fetch(TAKE, (organization_id, attempt_id, *caps_columns(caps)))}
    return [cap for cap in caps if cap.scope.value not in taken]


def caps_columns(caps: list[Cap]) -> tuple[list[str], list[str], list[str]]:
    """Scopes, subjects and limits, as the statements take them."""
    return [cap.scope.value for cap in caps], [cap.digest for cap in caps], [str(cap.limit) for cap in caps]
