"""Gives every governed table its triggers after a migrate, if they are missing or its columns changed. Rows that a
table has already are bound once, by an entry `record.baseline`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import connection, transaction

from governance.ledger.services import ledger_append
from governance.record.models import RowShape
from governance.record.rules.tables import BOUND, BoundTable
from governance.record.sql import TableShape, bind_body, bind_existing, bind_function, bind_triggers, quoted
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.ids import uuid7

# Columns in their order, the primary key, whether the record's guard lets nothing change, and what is installed.
LIVE: Final = """
SELECT c.relname, k.attname, format_type(k.atttypid, NULL),
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
    EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
        WHERE t.tgrelid = c.oid AND t.tgname = 'append_only_rows' AND p.proname = 'holdpoint_refuse_change'),
    (SELECT p.prosrc FROM pg_proc p WHERE p.proname = 'holdpoint_bind_' || c.relname
        AND p.pronamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled = 'A'
        AND t.tgname IN ('bind_rows', 'bind_end', 'bind_changes', 'zz_bind_version'))
FROM pg_class c
JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = i.indkey[0]
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname = ANY(%s)
"""
# Rows per entry: a verifier reads an entry's rows as a whole.
PER_BASELINE: Final = 20_000
KINDS: Final = {"uuid": "uuid", "bigint": "int", "integer": "int", "smallint": "int"}


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A governed table as the catalogue shows it."""

    name: str
    key: str
    key_type: str
    columns: list[str]
    append_only: bool
    body: str | None
    triggers: int

    @property
    def key_kind(self) -> str:
        return KINDS.get(self.key_type, "text")

    def shape(self, bound: BoundTable, number_of_shape: int) -> TableShape:
        versioned = not self.append_only
        columns = [name for name in self.columns if name not in bound.loose]
        if versioned and "row_version" not in columns:
            columns.append("row_version")
        return TableShape(
            number=bound.number,
            shape=number_of_shape,
            table=self.name,
            key=self.key,
            key_kind=self.key_kind,
            columns=tuple(columns),
            salted=bound.erasable,
            whole=not bound.loose,
            versioned=versioned,
        )


def binding_install(*, at: datetime) -> list[str]:
    """Bring every governed table up to date. Returns the names of those that were changed. As the tables' owner."""
    newest = {row.table: row for row in RowShape.objects.order_by("number", "shape")}
    changed = []
    for live in _live():
        shape = _wanted(live, newest)
        stored = newest.get(live.name)
        known = stored is not None and stored.shape == shape.shape
        if known and live.body == bind_body(shape) and live.triggers == (4 if shape.versioned else 2):
            continue
        _install(shape, live, baseline=stored is None, store=not known, at=at)
        changed.append(live.name)
    return changed


def _live() -> list[LiveTable]:
    with connection.cursor() as cursor:
        cursor.execute(LIVE, [sorted(BOUND)])
        return [LiveTable(*row) for row in cursor.fetchall()]


def _wanted(live: LiveTable, newest: Mapping[str, RowShape]) -> TableShape:
    """The shape that the table's columns give now: the newest one that is stored, or the next."""
    stored = newest.get(live.name)
    first = live.shape(BOUND[live.name], stored.shape if stored else 0)
    if stored is None or (tuple(stored.columns), stored.salted) == (first.columns, first.salted):
        return first
    return replace(first, shape=stored.shape + 1)


def _install(shape: TableShape, live: LiveTable, *, baseline: bool, store: bool, at: datetime) -> None:
    # One transaction and a lock against writers: no row can be written between the baseline and the triggers.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE public.{quoted(shape.table)} IN SHARE ROW EXCLUSIVE MODE")
        if shape.versioned and "row_version" not in live.columns:
            # Not a field of the model: only the triggers write it. A constant default rewrites no row.
            cursor.execute(
                f"ALTER TABLE public.{quoted(shape.table)} ADD COLUMN row_version integer NOT NULL DEFAULT 1"
            )
        cursor.execute(bind_function(shape))
        for statement in bind_triggers(shape):
            cursor.execute(statement)
        if store:
            RowShape(
                number=shape.number,
                shape=shape.shape,
                table=shape.table,
                key=shape.key,
                key_kind=shape.key_kind,
                columns=list(shape.columns),
                salted=shape.salted,
            ).save()
        cursor.execute(f"SELECT count(*) FROM public.{quoted(shape.table)}")  # noqa: S608
        (count,) = cursor.fetchone()
        if baseline and count:
            _bind_existing(shape, count, at)


def _bind_existing(shape: TableShape, count: int, at: datetime) -> None:
    for first in range(0, count, PER_BASELINE):
        with connection.cursor() as cursor:
            # Each entry of this transaction gets its own rows: without this, the first one would get them all.
            cursor.execute("SELECT set_config('holdpoint.entry', '', true), set_config('holdpoint.part', '', true)")
            ledger_append(
                action="record.baseline",
                organization_id=None,
                subject_type="record",
                subject_id=uuid7(),
                actor=SYSTEM,
                at=at,
                payload={"table": shape.table, "rows": min(PER_BASELINE, count - first)},
            )
            cursor.execute(bind_existing(shape, first=first, count=PER_BASELINE))
