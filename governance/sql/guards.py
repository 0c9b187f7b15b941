"""Append-only tables and state machines: base classes of models, and the triggers behind them as migration operations.

The triggers protect the record. The base classes refuse the same earlier and with a clearer error."""

from collections.abc import Iterable
from typing import Any

from django.db import migrations, models
from django_fsm import FSMFieldMixin

from governance.violations.errors import RecordImmutable

# The triggers' own error codes: HP001 an append-only row, HP002 an illegal transition, HP003 a legal hold, HP004 a move
# that nothing explains, HP005 a ledger entry of another time or transaction.
OWN_CODES = "HP"
REFUSE_FUNCTION = """
CREATE OR REPLACE FUNCTION holdpoint_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;
"""


def refused_by_guard(error: BaseException) -> bool:
    """Whether one of these triggers refused the statement. For a code that it does not know, psycopg raises the same
    class as for a lost connection: who tries again after that would try a forgery for ever."""
    code = getattr(error.__cause__, "sqlstate", None)
    return bool(code) and str(code).startswith(OWN_CODES)


# PostgreSQL's codes for what it refuses to store: rights, a read-only server, a table, column or function that is not
# as the program knows it, a trigger, and values that no constraint allows. Not the unique constraint: that is a lost
# race.
REFUSALS = frozenset(
    {"42501", "25006", "42P01", "42703", "42883", "3F000", "P0001", "P0004", "23001", "23502", "23503", "23514"}
)


def refused_by_database(error: BaseException) -> bool:
    """Whether the database answers and will not store it, now or at any later try with the same server."""
    return getattr(error.__cause__, "sqlstate", None) in REFUSALS or refused_by_guard(error)


class AppendOnlyModel(models.Model):
    """A row that is inserted and not changed afterwards, except into its erased form (see `erasable`)."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise RecordImmutable
        # Without it Django may try an UPDATE first if the key is set: the trigger would refuse that if the row exists.
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise RecordImmutable


def append_only_tables(models_: list[type[models.Model]]) -> list[str]:
    """The tables that need the triggers, and on which the application's role has only SELECT and INSERT."""
    return sorted(model._meta.db_table for model in models_ if issubclass(model, AppendOnlyModel))


def protect_table(table: str) -> migrations.RunSQL:
    """Migration operation: refuse UPDATE, DELETE and TRUNCATE, also under session_replication_role = replica."""
    # Two triggers, because a row trigger does not fire on TRUNCATE. ENABLE ALWAYS, because replica mode skips a plain
    # trigger.
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


class StateMachineModel(models.Model):
    """A row with a protected state field: `refresh_from_db` can read the state, and assigning to it still raises."""

    class Meta:
        abstract = True

    def refresh_from_db(  # type: ignore[override]
        self, using: str | None = None, fields: Iterable[str] | None = None, **kwargs: Any
    ) -> None:
        # django-fsm's own mixin switches the protection off for the whole process while it reads: another thread could
        # then assign a state. Here the protected fields are read apart and written past their descriptor.
        names = list(fields) if fields is not None else [f.attname for f in self._meta.concrete_fields]
        guarded = [name for name in names if self._is_guarded(name)]
        super().refresh_from_db(using=using, fields=[name for name in names if name not in guarded], **kwargs)
        if guarded:
            self.__dict__.update(type(self)._base_manager.values(*guarded).get(pk=self.pk))

    @classmethod
    def _is_guarded(cls, name: str) -> bool:
        field = cls._meta.get_field(name)
        return isinstance(field, FSMFieldMixin) and field.protected


def legal_moves_only(table: str, moves: frozenset[tuple[str, str]], *, frozen: Iterable[str] = ()) -> migrations.RunSQL:
    """Migration operation. `moves` are the state changes that an UPDATE may make. `frozen` columns keep their value
    once the row is no longer a draft (without a state `draft`, from the start). Only drafts can be deleted."""
    return migrations.RunSQL(
        sql=f"""
        {guard_function(table, moves, frozen=frozen)}
        CREATE TRIGGER legal_moves BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION {table}_guard();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER legal_moves;
        """,
        reverse_sql=f"DROP TRIGGER legal_moves ON {table}; DROP FUNCTION {table}_guard();",
    )


def guard_function(
    table: str, moves: frozenset[tuple[str, str]], *, frozen: Iterable[str] = (), passes: str = ""
) -> str:
    """SQL of the trigger's function. `passes`: statements that may accept an UPDATE before the other checks."""
    # The transitions come from the tables in `states.py`, which the models are built from too.
    legal = " OR ".join(f"(OLD.state = '{source}' AND NEW.state = '{target}')" for source, target in sorted(moves))
    changed = " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in frozen) or "FALSE"
    return f"""
        CREATE OR REPLACE FUNCTION {table}_guard() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                IF OLD.state <> 'draft' THEN
                    RAISE EXCEPTION 'append-only: a % that left its draft stays', TG_TABLE_NAME USING ERRCODE = 'HP001';
                END IF;
                RETURN OLD;
            END IF;{passes}
            IF NEW.state IS DISTINCT FROM OLD.state AND NOT ({legal}) THEN
                RAISE EXCEPTION 'illegal move of % from % to %', TG_TABLE_NAME, OLD.state, NEW.state
                    USING ERRCODE = 'HP002';
            END IF;
            IF OLD.state <> 'draft' AND ({changed}) THEN
                RAISE EXCEPTION 'append-only: % is immutable after its draft', TG_TABLE_NAME USING ERRCODE = 'HP001';
            END IF;
            RETURN NEW;
        END $$;
        """
