"""Reads bound rows and the governed rows themselves, with the digests that they have now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection

from governance.record.models import RowShape
from governance.record.rules.items import BoundItem, items_read
from governance.record.sql import TableShape, image, key_bytes, quoted

PARTS: Final = """
SELECT entry_id, string_agg(rows, ''::bytea ORDER BY part) FROM governance_boundrows
WHERE entry_id = ANY(%s) GROUP BY entry_id
"""
# By position: what a range of leaves covers.
SEALED: Final = """
SELECT b.entry_id, b.rows, b.salts FROM governance_ledgerleaf l
JOIN governance_boundrows b ON b.entry_id = l.entry_id
WHERE l.position >= %s AND l.position < %s ORDER BY l.position, b.part
"""
# What no leaf covers yet. The join finds entries by the sealer's own index.
UNSEALED: Final = """
SELECT b.entry_id, b.rows, b.salts FROM governance_ledgerentry e
JOIN governance_boundrows b ON b.entry_id = e.id
WHERE NOT EXISTS (SELECT 1 FROM governance_ledgerleaf l WHERE l.entry_id = e.id) ORDER BY e.txid, e.id, b.part
"""
# By the partial index of the same condition (migration 0022).
DELETIONS: Final = """
SELECT entry_id, rows, salts FROM governance_boundrows WHERE position(decode(repeat('00', 32), 'hex') IN rows) > 0
"""
# Parts whose entry is gone: the entry was removed, or the part was put in by hand.
WITHOUT_ENTRY: Final = """
SELECT DISTINCT b.entry_id FROM governance_boundrows b
WHERE NOT EXISTS (SELECT 1 FROM governance_ledgerentry e WHERE e.id = b.entry_id) LIMIT 100
"""
COLUMNS: Final = """
SELECT c.relname, ARRAY(SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class BoundPart:
    """One part: the rows that are bound to an entry."""

    entry_id: UUID
    rows: bytes
    salts: bytes

    def items(self) -> Iterator[BoundItem]:
        return items_read(self.rows, self.salts)


def bound_rows_of(*, entry_ids: Iterable[UUID]) -> dict[UUID, bytes]:
    """The bytes that the leaves of these entries cover beside the entries. Entries without bound rows are missing."""
    with connection.cursor() as cursor:
        cursor.execute(PARTS, [list(entry_ids)])
        return {entry_id: bytes(rows) for entry_id, rows in cursor.fetchall()}


def parts_sealed(*, first: int, before: int) -> list[BoundPart]:
    return _parts(SEALED, [first, before])


def parts_unsealed() -> list[BoundPart]:
    return _parts(UNSEALED, [])


def _parts(sql: str, parameters: Sequence[Any]) -> list[BoundPart]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [BoundPart(entry, bytes(rows), bytes(salts or b"")) for entry, rows, salts in cursor.fetchall()]


def parts_with_deletions() -> list[BoundPart]:
    """Parts that may name a deletion. They are few: governed rows are hardly ever deleted."""
    return _parts(DELETIONS, [])


def parts_without_entry() -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(WITHOUT_ENTRY)
        return [row[0] for row in cursor.fetchall()]


def shapes_stored() -> dict[tuple[int, int], TableShape]:
    """Every shape that digests were made with, by table number and shape."""
    rows = list(RowShape.objects.order_by("number", "shape"))
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [[row.table for row in rows]])
        live = {name: tuple(columns) for name, columns in cursor.fetchall()}
    return {
        (row.number, row.shape): TableShape(
            number=row.number,
            shape=row.shape,
            table=row.table,
            key=row.key,
            key_kind=row.key_kind,
            columns=tuple(row.columns),
            salted=row.salted,
            whole=tuple(row.columns) == live.get(row.table),
            versioned="row_version" in row.columns,
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class RowNow:
    version: int
    digest: bytes


def rows_now(*, shape: TableShape, wanted: Mapping[bytes, bytes]) -> dict[bytes, RowNow]:
    """The rows with these ids as they are now: version and digest, salted as wanted. Missing rows are missing."""
    version = "r.row_version" if shape.versioned else "1"
    salt = "w.salt || " if shape.salted else ""
    if shape.key_kind == "uuid":
        match = f"r.{quoted(shape.key)} = encode(w.id, 'hex')::uuid"
    elif shape.key_kind == "int":
        # The low eight bytes: ids of this kind are never negative.
        match = f"r.{quoted(shape.key)} = ('x' || right(encode(w.id, 'hex'), 16))::bit(64)::bigint"
    else:
        match = f"{key_bytes(shape, 'r')} = encode(w.id, 'hex')"
    sql = f"""
    SELECT w.id, {version}, sha256({salt}convert_to({image(shape, "r")}, 'UTF8'))
    FROM unnest(%s::bytea[], %s::bytea[]) AS w(id, salt) JOIN public.{quoted(shape.table)} r ON {match}
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(wanted), list(wanted.values())])
        return {bytes(key): RowNow(found, bytes(digest)) for key, found, digest in cursor.fetchall()}


def row_counts(*, tables: Iterable[str]) -> dict[str, int]:
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM public.{quoted(table)}")  # noqa: S608
            found[table] = cursor.fetchone()[0]
    return found


def ids_of(*, shape: TableShape, after: bytes, limit: int) -> list[bytes]:
    """The next ids of a table, in their order inside bound rows."""
    sql = f"""
    SELECT decode(k, 'hex') FROM (SELECT {key_bytes(shape, "r")} AS k FROM public.{quoted(shape.table)} r) AS named
    WHERE k > %s ORDER BY k LIMIT %s
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [after.hex(), limit])
        return [bytes(row[0]) for row in cursor.fetchall()]


def organization_of(*, shape: TableShape, row_id: bytes) -> UUID | None:
    """Whose row it is, if its table says so and the row is there."""
    if "organization_id" not in shape.columns:
        return None
    sql = f"""
    SELECT organization_id FROM public.{quoted(shape.table)} r WHERE {key_bytes(shape, "r")} = %s
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [row_id.hex()])
        row = cursor.fetchone()
    return row[0] if row else None
