"""SQL for migrations: a column names a row that stays, without the lock that a foreign key takes on it.

A foreign key locks the row that it names, so that nobody deletes it meanwhile. Each lock is written to the log, also if
the same transaction has just inserted the row. A row that nobody can delete, rename or truncate needs no lock: that it
is there when it is named is enough.
"""

from django.db import migrations

from governance.sql.explained import FIXED_PATH


def names_kept_row(table: str, column: str, to: str) -> migrations.RunSQL:
    """Migration operation: at commit, `column` names a row of `to`. Only for a `to` whose rows stay: by its own guards
    against DELETE and TRUNCATE, and with `ids_stay`."""
    function = f"{table}_{column}_is_there"
    # ENABLE ALWAYS: a foreign key is skipped in replica mode, this is not. The error is a foreign key's own.
    return migrations.RunSQL(
        sql=f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql {FIXED_PATH} AS $$
        BEGIN
            IF NOT EXISTS (SELECT FROM {to} named WHERE named.id = NEW.{column}) THEN
                RAISE EXCEPTION '% names a row that is not there', TG_TABLE_NAME
                    USING ERRCODE = 'foreign_key_violation', CONSTRAINT = '{function}';
            END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER {column}_is_there AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION {function}();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER {column}_is_there;
        """,
        reverse_sql=f"DROP TRIGGER {column}_is_there ON {table}; DROP FUNCTION {function}();",
    )


def ids_stay(table: str) -> migrations.RunSQL:
    """Migration operation: a row keeps its id, and the table is not emptied at once."""
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER fixed_id BEFORE UPDATE ON {table}
            FOR EACH ROW WHEN (OLD.id IS DISTINCT FROM NEW.id) EXECUTE FUNCTION holdpoint_refuse_change();
        CREATE TRIGGER table_stays BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER fixed_id;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER table_stays;
        """,
        reverse_sql=f"DROP TRIGGER fixed_id ON {table}; DROP TRIGGER table_stays ON {table};",
    )


def rows_and_ids_stay(table: str) -> list[migrations.RunSQL]:
    """Migration operations: a row is never deleted and keeps its id."""
    deletes = migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER rows_stay BEFORE DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER rows_stay;
        """,
        reverse_sql=f"DROP TRIGGER rows_stay ON {table};",
    )
    return [ids_stay(table), deletes]
