"""SQL for migrations: the functions and triggers through which the record can be erased.

An append-only row may change only into its erased form, for an item of an unfinished erasure order, while no legal hold
covers it. Placing a legal hold takes an advisory lock exclusively that every erasure takes shared: neither misses the
other.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.db import migrations

from governance.sql.guards import guard_function

# These functions run with the rights of the tables' owner. With the caller's search path, a table or function of the
# caller's own could take the place of ours.
SET_ASIDE = "SET search_path = public, pg_temp"

# A migration has run this text. A change here reaches new databases only: write a new migration instead.
FUNCTIONS = f"""
CREATE FUNCTION holdpoint_hold_lock(organization uuid) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended('legal hold ' || organization::text, 0)
$$;

-- Volatile: each look has a snapshot younger than the lock that was taken before it.
CREATE FUNCTION holdpoint_held(item governance_erasureitem) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
        SELECT FROM governance_legalhold hold
        WHERE hold.organization_id = (item).organization_id AND hold.state = 'active' AND (
            hold.scope = 'organization'
            OR (hold.scope = 'contract' AND hold.target = (item).contract)
            OR (hold.scope = 'attempt' AND (item).kind = 'attempt' AND hold.target = (item).subject_id::text)
            OR (hold.scope = 'run' AND (item).kind = 'run' AND hold.target = (item).subject_id::text)
            OR (hold.scope = 'run' AND 'workflow-instance/' || hold.target = ANY((item).refs))
            OR (hold.scope = 'attempt' AND 'attempt/' || hold.target = ANY((item).refs))
            OR (hold.scope IN ('context', 'person') AND hold.target = ANY((item).refs))
            OR (hold.scope = 'context' AND hold.target IN (
                SELECT commitment FROM governance_contextreference
                WHERE organization_id = (item).organization_id AND reference = ANY((item).refs)))
        )
    )
$$;

-- The item that this transaction erases; raises when there is none, or a hold covers it.
CREATE FUNCTION holdpoint_erasure_item() RETURNS governance_erasureitem LANGUAGE plpgsql AS $$
DECLARE
    item governance_erasureitem;
BEGIN
    SELECT i.* INTO item FROM governance_erasureitem i JOIN governance_erasureorder o ON o.id = i.order_id
    WHERE i.id = nullif(current_setting('holdpoint.erasure', true), '')::uuid
        AND i.state = 'waiting' AND o.finished_at IS NULL;
    IF item.id IS NULL THEN
        RAISE EXCEPTION 'append-only: no order to erase this' USING ERRCODE = 'HP001';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(item.organization_id));
    IF holdpoint_held(item) THEN
        RAISE EXCEPTION 'append-only: a legal hold covers this' USING ERRCODE = 'HP003';
    END IF;
    RETURN item;
END $$;

-- First of every erasing function: the item's row lock and the lock that holds wait for.
CREATE FUNCTION holdpoint_erasure_take(wanted uuid, of_kind text) RETURNS governance_erasureitem
LANGUAGE plpgsql {SET_ASIDE} AS $$
DECLARE
    item governance_erasureitem;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'an erasure needs read committed: an older snapshot would not see a hold';
    END IF;
    SELECT i.* INTO item FROM governance_erasureitem i JOIN governance_erasureorder o ON o.id = i.order_id
    WHERE i.id = wanted AND i.kind = of_kind AND i.state = 'waiting' AND o.finished_at IS NULL
    FOR NO KEY UPDATE OF i;
    IF item.id IS NULL THEN
        RAISE EXCEPTION 'append-only: no order to erase this' USING ERRCODE = 'HP001';
    END IF;
    PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(item.organization_id));
    RETURN item;
END $$;

-- The payloads of the ledger, and that they are erased. Only from within an erasing function.
CREATE FUNCTION holdpoint_erase_payloads(item governance_erasureitem) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    count integer;
BEGIN
    WITH gone AS (
        UPDATE governance_ledgerentry SET payload = NULL, nonce = NULL
        WHERE subject_id = ANY((item).related) AND organization_id = (item).organization_id AND payload IS NOT NULL
            AND action NOT IN ('erasure.done', 'erasure.refused')
        RETURNING id
    )
    INSERT INTO governance_erasedpayload (entry_id, item_id) SELECT id, (item).id FROM gone;
    GET DIAGNOSTICS count = ROW_COUNT;
    RETURN count;
END $$;

CREATE FUNCTION holdpoint_erase_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    item governance_erasureitem;
    mine boolean;
BEGIN
    IF TG_OP = 'UPDATE' AND coalesce(current_setting('holdpoint.erasure', true), '') <> '' THEN
        item := holdpoint_erasure_item();
        EXECUTE 'SELECT ' || TG_ARGV[0] INTO mine USING OLD, item;
        IF mine AND to_jsonb(NEW) = to_jsonb(OLD) || TG_ARGV[1]::jsonb THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;

CREATE FUNCTION governance_legalhold_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(holdpoint_hold_lock(NEW.organization_id));
    RETURN NEW;
END $$;
CREATE TRIGGER hold_lock BEFORE INSERT ON governance_legalhold
    FOR EACH ROW EXECUTE FUNCTION governance_legalhold_lock();
ALTER TABLE governance_legalhold ENABLE ALWAYS TRIGGER hold_lock;
"""  # noqa: S608
DROP_FUNCTIONS = """
DROP TRIGGER hold_lock ON governance_legalhold;
DROP FUNCTION governance_legalhold_lock();
DROP FUNCTION holdpoint_erase_only();
DROP FUNCTION holdpoint_erase_payloads(governance_erasureitem);
DROP FUNCTION holdpoint_erasure_take(uuid, text);
DROP FUNCTION holdpoint_erasure_item();
DROP FUNCTION holdpoint_held(governance_erasureitem);
DROP FUNCTION holdpoint_hold_lock(uuid);
"""


def first_text(name: str) -> str:
    """One of the functions above as it was first made, for the way back of a migration that replaced it."""
    found = re.search(rf"CREATE FUNCTION {name}\(.*?\nEND \$\$;", FUNCTIONS, re.DOTALL)
    if found is None:
        raise LookupError(name)
    return found[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)


def door_replaced(name: str, body: str) -> str:
    """An erasing function with another body. Who may call it stays as it is."""
    return f"""
    CREATE OR REPLACE FUNCTION {name}(wanted uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER {SET_ASIDE} AS $$
    {body}
    $$;
    """


def erasable(table: str, *, belongs: str, erased: Mapping[str, Any]) -> migrations.RunSQL:
    """Migration operation for an append-only table. `belongs` is a condition on `$1` (the row) and `$2` (the item).
    `erased` are the columns' values in the erased form: they change together, and no other column changes."""
    # The trigger keeps its name: `verify_ledger` looks for `append_only_rows` on every append-only table.
    values = json.dumps(erased, sort_keys=True)
    return migrations.RunSQL(
        sql=f"""
        DROP TRIGGER append_only_rows ON {table};
        CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION holdpoint_erase_only('{belongs}', '{values}');
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_rows;
        """,
        reverse_sql=f"""
        DROP TRIGGER append_only_rows ON {table};
        CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_rows;
        """,
    )


def erasable_machine(
    table: str, moves: frozenset[tuple[str, str]], *, frozen: list[str], before: list[str], erased: Mapping[str, str]
) -> migrations.RunSQL:
    """The same for a table with states whose rows are subjects of items: their guard accepts the erased form. `erased`
    has SQL expressions. `frozen` columns keep their value otherwise; `before` are the guard's frozen columns until now,
    for the way back."""
    values = ", ".join(f"'{column}', {value}" for column, value in sorted(erased.items()))
    passes = f"""
            IF coalesce(current_setting('holdpoint.erasure', true), '') <> '' AND NEW.erased_at IS NOT NULL
                AND (holdpoint_erasure_item()).subject_id = OLD.id
                AND to_jsonb(NEW)
                    = to_jsonb(OLD) || jsonb_build_object({values}, 'erased_at', to_jsonb(NEW.erased_at))
            THEN
                RETURN NEW;
            END IF;"""
    return migrations.RunSQL(
        sql=guard_function(table, moves, frozen=frozen, passes=passes),
        reverse_sql=guard_function(table, moves, frozen=before),
    )


def door(name: str, body: str) -> migrations.RunSQL:
    """Migration operation: an erasing function `name(item uuid) RETURNS text`. It returns an empty text, or the reason
    code of its refusal."""
    # SECURITY DEFINER: it runs as the tables' owner, so the application's role needs no UPDATE on the record. PUBLIC
    # may not call it: otherwise every role of the database could erase.
    return migrations.RunSQL(
        sql=f"""
        CREATE FUNCTION {name}(wanted uuid) RETURNS text LANGUAGE plpgsql SECURITY DEFINER {SET_ASIDE} AS $$
        {body}
        $$;
        REVOKE ALL ON FUNCTION {name}(uuid) FROM PUBLIC;
        """,
        reverse_sql=f"DROP FUNCTION {name}(uuid);",
    )
