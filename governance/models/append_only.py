"""Rows that are inserted and never changed. The database refuses it; this base only refuses earlier and clearer."""

from typing import Any

from django.db import migrations, models

from governance.errors import RecordImmutable

REFUSE_FUNCTION = """
CREATE OR REPLACE FUNCTION holdpoint_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;
"""


class AppendOnlyModel(models.Model):
    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise RecordImmutable
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise RecordImmutable


def append_only_tables(models_: list[type[models.Model]]) -> list[str]:
    """The tables that must carry the triggers and that the application role may only read and insert into."""
    return sorted(model._meta.db_table for model in models_ if issubclass(model, AppendOnlyModel))


def protect_table(table: str) -> migrations.RunSQL:
    """Migration operation: refuse UPDATE, DELETE and TRUNCATE, also under session_replication_role = replica.

    A row trigger does not fire on TRUNCATE and a plain trigger is skipped in replica mode; hence two, ENABLE ALWAYS.
    """
    return migrations.RunSQL(
        sql=f"""
        CREATE TRIGGER append_only_rows BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION holdpoint_refuse_change();
        CREATE TRIGGER append_only_table BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION holdpoint_refuse_change();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_rows;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_table;
        """,
        reverse_sql=f"""
        DROP TRIGGER append_only_rows ON {table};
        DROP TRIGGER append_only_table ON {table};
        """,
    )
