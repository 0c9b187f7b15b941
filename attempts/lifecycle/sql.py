"""SQL fragments of the rules of attempts, one per rule; statements are composed from them.

If a rule also exists in Python, tests/attempts/test_rule_parity.py runs both on the same random rows.
"""

from governance.sql.insert import InsertCondition

# --- a key's record --------------------------------------------------------------------------------------------------

RECORD_COLUMNS = (
    *("id", "organization_id", "scope", "key", "fingerprint", "parts", "attempt_id", "status", "body"),
    *("first_used_at", "expires_at", "generation"),
)


def key_locked_sql(name: str) -> str:
    """Tries to lock the key until the end of the transaction; true if this transaction has the lock."""
    # Without the lock two transactions with one key both find no record, and the later one fails on the unique
    # constraint instead of being told "in progress". It tries and never waits: a caller that repeats itself must not
    # pile up connections.
    return f"pg_try_advisory_xact_lock(hashtextextended({name}, 0))"


def record_latest_sql(*, organization: str, scope: str, key: str) -> str:
    """The latest record of a key: the state of its attempt, then RECORD_COLUMNS. `key_use` says what it means."""
    columns = ", ".join(f"r.{name}" for name in RECORD_COLUMNS)
    return f"""
    SELECT t.state, {columns} FROM attempts_idempotencyrecord r JOIN attempts_attempt t ON t.id = r.attempt_id
    WHERE r.organization_id = {organization} AND r.scope = {scope} AND r.key = {key}
    ORDER BY r.generation DESC LIMIT 1
    """  # noqa: S608


def _record_known_sql(*, organization: str, scope: str, key: str, generation: str) -> str:
    """Whether another request has used the key in the meantime: in this generation, or in a later one."""
    return f"""EXISTS (
        SELECT 1 FROM attempts_idempotencyrecord
        WHERE organization_id = {organization} AND scope = {scope} AND key = {key} AND generation >= {generation}
    )"""  # noqa: S608


# --- a free slot -----------------------------------------------------------------------------------------------------

# The first free number of the cap `wanted` (scope, subject, cap). It starts at a random number: without that all
# concurrent requests would try the same one first. The advisory lock stands for the row until the row is committed:
# without it two transactions choose the same number, and the second waits on the unique index for the first one's
# commit; fifty such intakes deadlocked. It tries and never waits: a number that another transaction is taking is
# skipped.
SLOT_FREE = """
    SELECT 1 + (step + start.at) % wanted.cap AS number
    FROM (SELECT floor(random() * wanted.cap)::int AS at) AS start, generate_series(0, wanted.cap - 1) AS step
    WHERE NOT EXISTS (
        SELECT 1 FROM attempts_slot held
        WHERE held.scope = wanted.scope AND held.subject = wanted.subject
          AND held.number = 1 + (step + start.at) % wanted.cap
    )
    AND pg_try_advisory_xact_lock(
        hashtextextended(wanted.scope || wanted.subject, 1 + (step + start.at) % wanted.cap)
    )
    LIMIT 1
"""


def _reservation(on_conflict: str) -> str:
    """Takes key and slots of one attempt, all or nothing. Common table expressions; `gate` has one row: `locked`,
    `known`, `busy` (the first cap that is full, or null) and `go`, the admit condition.

    $1 name of the key's lock (null: no key to guard), $2 organization, $3 scope, $4 key, $5 generation of its record,
    $6 to $8 the caps, $9 attempt, $10 whether slot rows are inserted: an attempt that ends within this transaction
    needs only the locks."""
    # MATERIALIZED: the locks are taken once, and before anything is inserted. The whole statement sees the database of
    # the moment when it began: a record or slot that was committed later is refused by the unique constraints.
    known = _record_known_sql(organization="$2", scope="$3", key="$4", generation="$5::int")
    return f"""
    guarded AS MATERIALIZED (
        SELECT $1::text IS NULL OR {key_locked_sql("$1")} AS locked, $1::text IS NOT NULL AND {known} AS known
    ),
    wanted_slots AS MATERIALIZED (
        SELECT wanted.scope, wanted.subject, wanted.position, free.number
        FROM guarded CROSS JOIN unnest($6::text[], $7::text[], $8::text[]::int[])
            WITH ORDINALITY AS wanted (scope, subject, cap, position)
        LEFT JOIN LATERAL ({SLOT_FREE}) free ON TRUE
        WHERE guarded.locked AND NOT guarded.known
    ),
    gate AS MATERIALIZED (
        SELECT locked, known, busy, locked AND NOT known AND busy IS NULL AS go
        FROM guarded CROSS JOIN (
            SELECT (SELECT scope FROM wanted_slots WHERE number IS NULL ORDER BY position LIMIT 1) AS busy
        ) full_cap
    ),
    slots AS (
        INSERT INTO attempts_slot (id, organization_id, scope, subject, number, attempt_id)
        SELECT gen_random_uuid(), $2, wanted_slots.scope, wanted_slots.subject, wanted_slots.number, $9
        FROM wanted_slots, gate WHERE gate.go AND $10
        {on_conflict} RETURNING scope
    )
    """  # noqa: S608


# For the statement that also writes the attempt's rows. No ON CONFLICT: if another request took a slot in the meantime,
# the error must refuse all rows. The statement is a transaction of its own, so nothing else is lost.
RESERVATION_CONDITION = InsertCondition(sql=_reservation(""), answer="locked, go", width=10)
# For a reservation before the rows, in the caller's transaction. ON CONFLICT, because an error would abort the caller's
# work. The statement returns the scopes whose slots it got; `slots_reserve` compares.
RESERVE = f"""
WITH {_reservation("ON CONFLICT (scope, subject, number) DO NOTHING")}
SELECT locked, known, busy, (SELECT array_agg(scope) FROM slots) FROM gate
"""  # noqa: S608
