"""SQL for migrations: a row moves only together with the row that explains it, and some columns and rows never change.

The triggers hold for every role. The application's role cannot turn them off; what the owner does shows in the manifest
of guards and in the bound rows.
"""

from collections.abc import Iterable

from django.db import migrations

# Without a fixed path, a table or function of the caller's own could take the place of ours.
FIXED_PATH = "SET search_path = pg_catalog, public, pg_temp"

# HP004: a move that nothing explains. A migration has run this text: write a new migration instead of changing it.
OWNER_ONLY = f"""
-- In a SECURITY DEFINER function of the tables' owner `current_user` is the owner; for a statement of the application's
-- role it is that role, whatever settings it has made.
CREATE FUNCTION holdpoint_by_owner() RETURNS boolean LANGUAGE sql STABLE {FIXED_PATH} AS $$
    SELECT pg_get_userbyid(relowner) = current_user FROM pg_class WHERE oid = 'public.governance_ledgerentry'::regclass
$$;
CREATE FUNCTION holdpoint_owner_only() RETURNS trigger LANGUAGE plpgsql {FIXED_PATH} AS $$
BEGIN
    IF NOT holdpoint_by_owner() THEN
        RAISE EXCEPTION 'append-only: % on % goes only through the functions that erase', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'HP001';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
"""  # noqa: S608
DROP_OWNER_ONLY = "DROP FUNCTION holdpoint_owner_only(); DROP FUNCTION holdpoint_by_owner();"


def entry_about(*subjects: str) -> str:
    """Condition: this transaction wrote a ledger entry about one of these ids."""
    # The index (txid, id) gives the few entries of this transaction.
    return (
        "EXISTS (SELECT FROM governance_ledgerentry e WHERE e.txid = pg_current_xact_id()::text::bigint"
        f" AND e.subject_id IN ({', '.join(subjects)}))"
    )


def fresh(row: str) -> str:
    """Condition: the row was not written before this transaction began to write."""
    # A row's xmin may be the number of a savepoint, which is larger than that of its transaction. `age` counts from the
    # transaction's own number and survives a wraparound.
    return f"age({row}.xmin) <= 0"


def explained(table: str, *, moved: Iterable[str], by: str, name: str = "explained") -> migrations.RunSQL:
    """Migration operation: at commit, an UPDATE that changed one of `moved` needs `by`, a condition on OLD and NEW.
    `name` if a table has more than one of these."""
    # Deferred, because services change the row first and insert what explains it afterwards. The WHEN clause is checked
    # at once and without a call: an UPDATE of other columns, and every INSERT, costs nothing.
    function = f"{table}_{name}"
    return migrations.RunSQL(
        sql=f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql {FIXED_PATH} AS $$
        BEGIN
            IF NOT ({by}) THEN
                RAISE EXCEPTION 'unexplained: % moved without the row that explains it', TG_TABLE_NAME
                    USING ERRCODE = 'HP004';
            END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER {name}_moves AFTER UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW WHEN ({_changed(moved)}) EXECUTE FUNCTION {function}();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}_moves;
        """,
        reverse_sql=f"DROP TRIGGER {name}_moves ON {table}; DROP FUNCTION {function}();",
    )


def fixed_columns(table: str, columns: Iterable[str]) -> migrations.RunSQL:
    """Migration operation: these columns keep the value that the row was inserted with."""
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER fixed_columns BEFORE UPDATE ON {table}
            FOR EACH ROW WHEN ({_changed(columns)}) EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER fixed_columns;
        """,
        reverse_sql=f"DROP TRIGGER fixed_columns ON {table};",
    )


def fixed_times(table: str, columns: Iterable[str]) -> migrations.RunSQL:
    """Migration operation: the same for columns that say when. Tests let time pass by setting them: for that they
    replace `holdpoint_any_moment()`, and the manifest of guards names that anywhere else."""
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER fixed_times BEFORE UPDATE ON {table}
            FOR EACH ROW WHEN ({_changed(columns)}) EXECUTE FUNCTION holdpoint_refuse_time();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER fixed_times;
        """,
        reverse_sql=f"DROP TRIGGER fixed_times ON {table};",
    )


def rows_stay(table: str) -> migrations.RunSQL:
    """Migration operation: no DELETE and no TRUNCATE."""
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER rows_stay BEFORE DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION holdpoint_refuse_change();
        CREATE TRIGGER table_stays BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER rows_stay;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER table_stays;
        """,
        reverse_sql=f"DROP TRIGGER rows_stay ON {table}; DROP TRIGGER table_stays ON {table};",
    )


def door_only(table: str, columns: Iterable[str]) -> migrations.RunSQL:
    """Migration operation: these columns change only in a function of the tables' owner, such as those that erase."""
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER door_only BEFORE UPDATE ON {table}
            FOR EACH ROW WHEN ({_changed(columns)}) EXECUTE FUNCTION holdpoint_owner_only();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER door_only;
        """,
        reverse_sql=f"DROP TRIGGER door_only ON {table};",
    )


def _changed(columns: Iterable[str]) -> str:
    return " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
