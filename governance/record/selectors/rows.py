"""Reads bound rows and the governed rows themselves, with the digests that they have now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection

from governance.record.models import RowShape
from governance.record.rules.items import SALT, BoundItem, items_read
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
NAMING: Final = """
SELECT entry_id, rows, salts FROM governance_boundrows b
WHERE EXISTS (SELECT FROM unnest(%s::bytea[]) AS one WHERE position(one IN b.rows) > 0)
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


# Bytes that name a row inside bound rows.
KEY: Final = 16


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


class RowNow(NamedTuple):
    """`mark`: a number for this row in this version. With another seed it is another one, so that nobody can prepare
    rows whose numbers cancel out."""

    version: int
    digest: bytes
    mark: int = 0


def _mark(shape: TableShape, seed: int) -> str:
    version = "r.row_version" if shape.versioned else "1"
    return f"hashtextextended(r.{quoted(shape.key)}::text, {seed:d} + {version})"


def rows_now(*, shape: TableShape, wanted: Mapping[bytes, bytes], seed: int = 0) -> dict[bytes, RowNow]:
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
    # Ids and salts as one value each: as arrays, writing and reading them would take longer than finding the rows.
    sql = f"""
    SELECT w.id, {version}, sha256({salt}convert_to({image(shape, "r")}, 'UTF8')), {_mark(shape, seed)}
    FROM (SELECT substr(p.ids, n * {KEY} + 1, {KEY}) AS id, substr(p.salts, n * {SALT} + 1, {SALT}) AS salt
        FROM (SELECT %s::bytea AS ids, %s::bytea AS salts) AS p, generate_series(0, %s) AS n OFFSET 0) AS w
    JOIN public.{quoted(shape.table)} r ON {match}
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [b"".join(wanted), b"".join(wanted.values()), len(wanted) - 1])
        return {bytes(key): RowNow(found, bytes(digest), mark) for key, found, digest, mark in cursor.fetchall()}


def row_counts(*, tables: Iterable[str]) -> dict[str, int]:
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM public.{quoted(table)}")  # noqa: S608
            found[table] = cursor.fetchone()[0]
    return found


def rows_sum(*, shape: TableShape, seed: int) -> tuple[int, int]:
    """How many rows the table has, and the sum of their marks."""
    sql = f"SELECT count(*), coalesce(sum({_mark(shape, seed)}), 0) FROM public.{quoted(shape.table)} r"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql)
        count, total = cursor.fetchone()
    return count, int(total)


def versions_of(*, shape: TableShape, after: bytes, limit: int) -> dict[bytes, int]:
    """The next rows of a table with their versions, in the order of their ids inside bound rows."""
    version = "r.row_version" if shape.versioned else "1"
    sql = f"""
    SELECT decode(k, 'hex'), v FROM (
        SELECT {key_bytes(shape, "r")} AS k, {version} AS v FROM public.{quoted(shape.table)} r) AS named
    WHERE k > %s ORDER BY k LIMIT %s
    """  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [after.hex(), limit])
        return {bytes(key): found for key, found in cursor.fetchall()}


def parts_that_name(*, row_ids: Iterable[bytes]) -> list[BoundPart]:
    """Every part with one of these ids. It reads all parts: only for few ids, and only after a suspicion."""
    return _parts(NAMING, [list(row_ids)])


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
