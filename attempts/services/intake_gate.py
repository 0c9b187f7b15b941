"""The gate of an intake's one statement: nothing is inserted unless key and places are free at that moment."""

from typing import Any
from uuid import UUID

from attempts.services.slots import FREE, Cap, caps_columns
from governance.insert import Gate

# $1 lock of the key (empty: there is none to guard), $2 organization, $3 scope, $4 key, $5 generation of the record;
# $6 to $8 the caps, $9 attempt, $10 whether it keeps its places. A record or a place that was committed after the
# statement began is not seen here; the unique constraints refuse the statement then.
GATE = Gate(
    sql=f"""
    held AS MATERIALIZED (
        SELECT $1::text IS NULL OR pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS locked,
               $1::text IS NOT NULL AND EXISTS (
                   SELECT 1 FROM attempts_idempotencyrecord
                   WHERE organization_id = $2 AND scope = $3 AND key = $4 AND generation >= $5::int
               ) AS known
    ),
    places AS MATERIALIZED (
        SELECT wanted.scope, wanted.subject, free.number
        FROM held CROSS JOIN unnest($6::text[], $7::text[], $8::text[]::int[]) AS wanted (scope, subject, cap)
        LEFT JOIN LATERAL ({FREE}) free ON TRUE
        WHERE held.locked AND NOT held.known
    ),
    gate AS MATERIALIZED (
        SELECT locked, EXISTS (SELECT 1 FROM places WHERE number IS NULL) AS busy,
               locked AND NOT known AND NOT EXISTS (SELECT 1 FROM places WHERE number IS NULL) AS go
        FROM held
    ),
    slots AS (
        INSERT INTO attempts_slot (id, organization_id, scope, subject, number, attempt_id)
        SELECT gen_random_uuid(), $2, places.scope, places.subject, places.number, $9
        FROM places, gate WHERE gate.go AND $10
    )
    """,  # noqa: S608
    answer="locked, go",
    width=10,
)


def gate_parameters(
    *,
    lock: str | None,
    organization_id: UUID,
    scope: str,
    key: str,
    generation: int,
    caps: list[Cap],
    attempt_id: UUID,
    keeps: bool,
) -> tuple[Any, ...]:
    return (lock, organization_id, scope, key, str(generation), *caps_columns(caps), attempt_id, keeps)
