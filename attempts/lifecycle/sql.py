"""SQL fragments of the rules of attempts, one per rule; statements are composed from them.

If a rule also exists in Python, tests/attempts/test_rule_parity.py runs both on the same random rows.
"""

from governance.sql.insert import InsertCondition

# --- a key's record --------------------------------------------------------------------------------------------------

RECORD_COLUMNS = (
    *("id", "organization_id", "scope", "key", "fingerprint", "parts", "attempt_id", "status", "body"),
    *("first_used_at", "expires_at", "generation"),
)
# How `body` says that the answer is made from the attempt's row: attempts/intake/services/rows.py.
ALLOWED_FORM = "1"
# Then it comes as a JSON list: the form, and what the answer is made from. Answers themselves are JSON objects.
BODY = f"""CASE WHEN r.body = '{ALLOWED_FORM}' THEN json_build_array(r.body, t.workflow_slug, t.contract_version,
        t.runtime_mode, t.risk_tier, t.decision_id, t.action_digest)::text ELSE r.body END AS body"""


def key_locked_sql(name: str) -> str:
    """Tries to lock the key until the end of the transaction; true if this transaction has the lock."""
    # Without the lock two transactions with one key both find no record, and the later one fails on the unique
    # constraint instead of being told "in progress". It tries and never waits: a caller that repeats itself must not
    # pile up connections.
    return f"pg_try_advisory_xact_lock(hashtextextended({name}, 0))"


def record_latest_sql(*, organization: str, scope: str, key: str) -> str:
    """The latest record of a key: the state of its attempt, then RECORD_COLUMNS. `key_use` says what it means."""
    columns = ", ".join(BODY if name == "body" else f"r.{name}" for name in RECORD_COLUMNS)
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

# How many transactions may take a slot of one subject at the same time while many are free. Each has one of so many
# tickets (advisory locks, kept until its end), so the others know how many slots at most are taken and not yet visible.
TICKETS = 6
# A caller must not wait long for a cap. After this time the cap counts as full.
PATIENCE = "300 milliseconds"
# What is under way, counted up to `most`. One row per attempt under way, of whatever contract. A region is counted over
# all organizations, every other subject within one.
SLOTS_USED = """
CREATE OR REPLACE FUNCTION holdpoint_slots_used(scope text, organization uuid, subject text, most int)
RETURNS int LANGUAGE plpgsql VOLATILE AS $body$
DECLARE found int;
BEGIN
    CASE scope
    WHEN 'tenant' THEN
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s WHERE s.organization_id = organization LIMIT most) taken;
    WHEN 'workflow' THEN
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s WHERE s.organization_id = organization AND s.workflow_slug = subject
            LIMIT most) taken;
    WHEN 'context' THEN
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s WHERE s.organization_id = organization AND s.context = subject
              AND s.context <> '' LIMIT most) taken;
    WHEN 'key' THEN
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s WHERE s.organization_id = organization AND s.key = subject
              AND s.key <> '' LIMIT most) taken;
    WHEN 'user' THEN
        -- Whoever answers for the calling service now.
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s JOIN attempts_attempt a ON a.id = s.attempt_id
            JOIN governance_serviceaccount c ON c.id = a.caller_id
            WHERE s.organization_id = organization AND c.responsible_id = subject::uuid LIMIT most) taken;
    WHEN 'region' THEN
        -- Of every organization that has the region.
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_slot s JOIN governance_organization o ON o.id = s.organization_id
            WHERE o.regions @> ARRAY[subject]::varchar[] LIMIT most) taken;
    WHEN 'holds' THEN
        SELECT count(*) INTO found FROM (
            SELECT 1 FROM attempts_attempt a WHERE a.organization_id = organization AND a.state = 'review-required'
            LIMIT most) taken;
    END CASE;
    RETURN found;
END $body$
"""
# Whether one more may come: null, or how many there are if not. `cap` null: no limit, but the others' counts must
# notice this one too.
#
# A function, and VOLATILE, because each of its statements then sees what was committed before that statement began. A
# lock and a count in one ordinary statement do not work: its snapshot is older than the lock, so a slot that was
# committed in between is missed.
#
# With many free slots: take a ticket, count. What the count cannot see is taken by holders of the other tickets, so
# there are at most TICKETS - 1 of them. Before the ticket twice as many must be free: a ticket is kept, and one that
# its holder cannot use would look like a slot that is being taken. With few free slots a ticket is too rough: take the
# gate (one transaction at a time), look which tickets are held, then count. A holder of the gate sees every ticket
# that was taken before it; who takes a ticket later sees the gate held, and comes through the gate too. A second claim
# of one transaction always goes through the gate, because the first one has used its ticket.
#
# Every lock is tried and none is waited for, so no order of them can deadlock. The tests of other transactions' locks
# are shared and given back in the same expression.
SLOT_FREE = f"""
CREATE OR REPLACE FUNCTION holdpoint_slot_refused(
    scope text, organization uuid, subject text, cap int, again boolean
) RETURNS int LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    name text := scope || ' ' || CASE WHEN scope = 'region' THEN '' ELSE organization::text END || ' ' || subject;
    gate bigint := hashtextextended(name, 0);
    until timestamptz := clock_timestamp() + interval '{PATIENCE}';
    first int := floor(random() * {TICKETS})::int;
    ticket bigint;
    number bigint;
    used int;
    others int;
BEGIN
    LOOP
        IF cap IS NOT NULL THEN
            used := holdpoint_slots_used(scope, organization, subject, cap);
            IF used >= cap THEN
                RETURN used;
            END IF;
        END IF;
        IF ticket IS NULL AND NOT again AND (cap IS NULL OR used + {2 * TICKETS} <= cap) THEN
            FOR step IN 0..{TICKETS - 1} LOOP
                number := hashtextextended(name, 1 + (first + step) % {TICKETS});
                IF pg_try_advisory_xact_lock(number) THEN
                    ticket := number;
                    EXIT;
                END IF;
            END LOOP;
        END IF;
        IF ticket IS NOT NULL
            AND (CASE WHEN pg_try_advisory_lock_shared(gate) THEN pg_advisory_unlock_shared(gate) ELSE false END)
        THEN
            IF cap IS NULL THEN
                RETURN NULL;
            END IF;
            IF holdpoint_slots_used(scope, organization, subject, cap) + {TICKETS} <= cap THEN
                RETURN NULL;
            END IF;
        END IF;
        IF pg_try_advisory_xact_lock(gate) THEN
            IF cap IS NULL THEN
                RETURN NULL;
            END IF;
            others := 0;
            FOR step IN 1..{TICKETS} LOOP
                number := hashtextextended(name, step);
                IF number IS DISTINCT FROM ticket AND NOT (CASE
                    WHEN pg_try_advisory_lock_shared(number) THEN pg_advisory_unlock_shared(number) ELSE false END)
                THEN
                    others := others + 1;
                END IF;
            END LOOP;
            IF holdpoint_slots_used(scope, organization, subject, cap) + others < cap THEN
                RETURN NULL;
            END IF;
        END IF;
        IF clock_timestamp() >= until THEN
            RETURN cap;
        END IF;
        PERFORM pg_sleep(0.001 + 0.002 * random());
    END LOOP;
END $body$
"""
# The first of the caps that is full, as its number in the arrays and its use, or null. In the order of the arrays,
# which is the same for all callers. A cap of -1 is no limit.
CLAIM = """
CREATE OR REPLACE FUNCTION holdpoint_slots_claim(organization uuid, scopes text[], subjects text[], caps int[])
RETURNS text LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    used int;
    again boolean := coalesce(current_setting('holdpoint.claimed', true), '') = '1';
BEGIN
    FOR nr IN 1..coalesce(array_length(scopes, 1), 0) LOOP
        used := holdpoint_slot_refused(scopes[nr], organization, subjects[nr], nullif(caps[nr], -1), again);
        IF used IS NOT NULL THEN
            RETURN nr || ' ' || used;
        END IF;
    END LOOP;
    PERFORM set_config('holdpoint.claimed', '1', true);
    RETURN NULL;
END $body$
"""
SLOT_FUNCTIONS = (SLOTS_USED, SLOT_FREE, CLAIM)
DROP_SLOT_FUNCTIONS = """
DROP FUNCTION holdpoint_slots_claim(uuid, text[], text[], int[]);
DROP FUNCTION holdpoint_slot_refused(text, uuid, text, int, boolean);
DROP FUNCTION holdpoint_slots_used(text, uuid, text, int);
"""


def _reservation(on_conflict: str) -> str:
    """Takes key and slot of one attempt, or neither. Common table expressions; `gate` has one row: `locked`, `known`,
    `busy` (the first cap that is full and its use, or null) and `go`, the admit condition.

    $1 name of the key's lock (null: no key to guard), $2 organization, $3 scope, $4 key, $5 generation of its record,
    $6 to $8 the caps, $9 attempt, $10 whether a slot is inserted: an attempt that ends within this transaction needs
    only the locks, $11 to $13 workflow, context and key of the slot."""
    # MATERIALIZED: the locks are taken once, and before anything is inserted. The whole statement sees the records of
    # the moment when it began: one that was committed later is refused by the unique constraint.
    known = _record_known_sql(organization="$2", scope="$3", key="$4", generation="$5::int")
    return f"""
    guarded AS MATERIALIZED (
        SELECT $1::text IS NULL OR {key_locked_sql("$1")} AS locked, $1::text IS NOT NULL AND {known} AS known
    ),
    claimed AS MATERIALIZED (
        SELECT CASE WHEN guarded.locked AND NOT guarded.known
            THEN holdpoint_slots_claim($2, $6::text[], $7::text[], $8::text[]::int[]) END AS busy
        FROM guarded
    ),
    gate AS MATERIALIZED (
        SELECT locked, known, busy, locked AND NOT known AND busy IS NULL AS go FROM guarded CROSS JOIN claimed
    ),
    slots AS (
        INSERT INTO attempts_slot (attempt_id, organization_id, workflow_slug, context, key)
        SELECT $9, $2, $11, $12, $13 FROM gate WHERE gate.go AND $10
        {on_conflict} RETURNING 1
    )
    """  # noqa: S608


# For the statement that also writes the attempt's rows.
RESERVATION_CONDITION = InsertCondition(sql=_reservation(""), answer="locked, go", width=13)
# For a reservation before the rows, or of an attempt that is stored, in the caller's transaction.
RESERVE = f"""
WITH {_reservation("ON CONFLICT (attempt_id) DO NOTHING")}
SELECT locked, known, busy FROM gate
"""  # noqa: S608
