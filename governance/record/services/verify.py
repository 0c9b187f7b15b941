"""Checks every governed row against the ledger: whole, in parallel and under one snapshot, or only what is new."""

import gc
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from governance.record.rules.compare import (
    LATER,
    UNBOUND,
    Compared,
    Found,
    RowFault,
    RowKey,
    items_compare,
    row_name,
)
from governance.record.rules.items import BoundItem, BoundRowsInvalid
from governance.record.selectors.rows import (
    BoundPart,
    organization_of,
    parts_sealed,
    parts_that_name,
    parts_unsealed,
    parts_with_deletions,
    parts_without_entry,
    row_counts,
    rows_now,
    rows_sum,
    shapes_stored,
    versions_of,
)
from governance.record.services.commitments import FALSE_COMMITMENT, REFERENCES, commitments_false
from governance.record.sql import TableShape

# Leaves per range: it bounds the memory of a process, whatever the record's length.
RANGE: Final = 4096
# Faults that are named. A table that was restored from elsewhere would give millions.
MOST_NAMED: Final = 200
SIZE: Final = "SELECT coalesce(max(size), 0) FROM governance_ledgercheckpoint"
Progress = Callable[[int, int], None]
Shapes = dict[tuple[int, int], TableShape]


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """A governed row that is not what the ledger says, with the names that people need."""

    table: str
    id: str
    what: str
    organization_id: UUID | None = None

    def as_json(self) -> dict[str, str]:
        return {"table": self.table, "id": self.id, "what": self.what}


@dataclass(slots=True)
class RecordVerified:
    entries: int = 0
    rows: int = 0
    tables: int = 0
    count: int = 0
    """Of faults; `faults` names at most MOST_NAMED."""
    faults: list[RecordDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, found: RecordDifference) -> None:
        self.count += 1
        if len(self.faults) < MOST_NAMED:
            self.faults.append(found)

    def as_json(self) -> dict[str, Any]:
        return {
            "valid": not self.count,
            "checked": {"entries": self.entries, "rows": self.rows, "tables": self.tables},
            "count": self.count,
            "faults": [one.as_json() for one in self.faults],
            "notes": self.notes,
        }


def record_rows_verify(
    *, first: int = 0, processes: int = 1, progress: Progress = lambda done, total: None
) -> RecordVerified:
    """Compare the rows that are bound to the leaves from `first` on, and to entries that wait for their leaf. From 0
    it is the whole record: then rows that no entry covers are found too."""
    with _one_snapshot() as snapshot:
        shapes = shapes_stored()
        # Another one for each run: see RowNow.
        seed = secrets.randbits(60)
        with connection.cursor() as cursor:
            cursor.execute(SIZE)
            (size,) = cursor.fetchone()
        whole = Compared()
        with _told(progress, apart=bool(snapshot)) as tell:
            for done, part in _ranges(first, size, processes, snapshot, seed):
                whole.add(part)
                tell(done, size)
        whole.add(parts_compare(parts_unsealed(), shapes, seed=seed))
        verified = _result(whole, shapes, size, seed if first == 0 else None)
        for user_id in commitments_false():
            verified.fault(RecordDifference(REFERENCES, str(user_id), FALSE_COMMITMENT))
        return verified


@contextmanager
def _one_snapshot() -> Iterator[str]:
    """One view of the database for all processes. Rows that are written meanwhile would otherwise look unexplained."""
    if connection.in_atomic_block:  # a test's own transaction: there is no second one to share it with
        yield ""
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0]


@contextmanager
def _told(progress: Progress, *, apart: bool) -> Iterator[Progress]:
    """`progress`, called in a thread of its own: it may write, and this thread's transaction is read-only."""
    if not apart:
        yield progress
        return
    with ThreadPoolExecutor(1) as teller:
        try:
            yield lambda done, total: teller.submit(progress, done, total).result()
        finally:
            # Connections belong to threads; this one would stay open until the process ends.
            teller.submit(lambda: connection.close()).result()


def _ranges(first: int, size: int, processes: int, snapshot: str, seed: int) -> Iterator[tuple[int, Compared]]:
    starts = range(first, size, RANGE)
    ends = [min(start + RANGE, size) for start in starts]
    if processes < 2 or len(ends) < 2 or not snapshot:
        shapes = shapes_stored()
        for start, end in zip(starts, ends, strict=True):
            yield end, parts_compare(parts_sealed(first=start, before=end), shapes, seed=seed)
        return
    # Children are forked with the parent's connection in memory; they open their own before they ask anything.
    with ProcessPoolExecutor(
        processes, mp_context=get_context("fork"), initializer=_child, initargs=(snapshot, seed)
    ) as pool:
        yield from zip(ends, pool.map(_range, starts, ends), strict=True)


_child_shapes: Shapes = {}
_child_seed: list[int] = []


def _child(snapshot: str, seed: int) -> None:
    # What the parent had loaded stays as it is: otherwise the collector goes through all of Django again and again.
    gc.freeze()
    # Forgotten, not closed: closing would end the parent's session on the shared socket.
    connection.connection = None
    connection.savepoint_ids = []
    connection.in_atomic_block = False
    connection.ensure_connection()
    connection.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SET TRANSACTION SNAPSHOT %s", [snapshot])
    _child_shapes.update(shapes_stored())
    _child_seed.append(seed)


def _range(start: int, end: int) -> Compared:
    found = parts_compare(parts_sealed(first=start, before=end), _child_shapes, seed=_child_seed[0])
    # Only the rounds use these; the sum of the marks says the same. They would be most of what is sent.
    found.later, found.met = {}, set()
    return found


def parts_compare(parts: Sequence[BoundPart], shapes: Shapes, *, seed: int = 0) -> Compared:
    """Compare all items of these parts with their rows. One statement per table, shape and salt set."""
    items: list[BoundItem] = []
    broken = Compared()
    for part in parts:
        try:
            items += part.items()
        except BoundRowsInvalid as wrong:
            broken.faults.append(RowFault(0, part.entry_id.bytes, f"the rows of the entry cannot be read: {wrong}"))
    wanted: dict[tuple[int, int], dict[bytes, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        wanted[item.number, item.shape][item.row_id].append(item.salt or b"")
    now: dict[RowKey, dict[bytes, Found]] = defaultdict(dict)
    for (number, shape), rows in wanted.items():
        known = shapes.get((number, shape))
        if known is None:
            broken.faults += [RowFault(number, row_id, "its table's shape is not known") for row_id in rows]
            continue
        # A row that was written twice has two salts: one look per salt, nearly always one in all.
        for turn in range(max(map(len, rows.values()))):
            ask = {row_id: salts[turn] for row_id, salts in rows.items() if turn < len(salts)}
            for row_id, found in rows_now(shape=known, wanted=ask, seed=seed).items():
                now[RowKey(number, row_id)][ask[row_id]] = found
    result = items_compare(items, now)
    result.add(broken)
    return result


def _result(whole: Compared, shapes: Shapes, size: int, seed: int | None) -> RecordVerified:
    tables = {shape.number: shape for shape in shapes.values()}
    verified = RecordVerified(entries=size, rows=whole.items, tables=len(tables))
    for fault in [*whole.faults, *whole.unexplained()]:
        verified.fault(named(fault, tables))
    for entry_id in parts_without_entry():
        verified.fault(RecordDifference("governance_boundrows", str(entry_id), "its ledger entry is gone"))
    if seed is not None:
        for shape in tables.values():
            for fault in rows_uncovered(whole, shape, size, seed):
                verified.fault(named(fault, tables))
    return verified


def rows_uncovered(whole: Compared, shape: TableShape, size: int, seed: int) -> Iterator[RowFault]:
    """Rows of the table that no item covers as they are, after all items were compared."""
    number = shape.number
    if rows_sum(shape=shape, seed=seed) == (whole.current.get(number, 0), whole.marks.get(number, 0)):
        return
    known = {fault.row_id for fault in whole.faults if fault.number == number}
    for fault in _uncovered(shape, size):
        if fault.row_id not in known:
            yield fault


def named(fault: RowFault, tables: dict[int, TableShape]) -> RecordDifference:
    shape = tables.get(fault.number)
    if shape is None:
        table = "governance_boundrows" if fault.number == 0 else f"table {fault.number}"
        return RecordDifference(table, row_name(fault.row_id, "uuid"), fault.what)
    organization = organization_of(shape=shape, row_id=fault.row_id)
    what = f"{fault.what} (now {fault.now.hex()})" if fault.now else fault.what
    return RecordDifference(shape.table, row_name(fault.row_id, shape.key_kind), what, organization)


def _uncovered(shape: TableShape, size: int) -> Iterator[RowFault]:
    """The rows of a table that no item covers in the version that they have. Slow: only for a table whose count or sum
    does not fit."""
    after, left = b"", MOST_NAMED
    while left > 0:
        page = versions_of(shape=shape, after=after, limit=100_000)
        if not page:
            return
        known: set[bytes] = set()
        open_rows = dict(page)
        for part in _all_parts(size):
            for item in part.items():
                if item.number == shape.number and item.row_id in page:
                    known.add(item.row_id)
                    if open_rows.get(item.row_id) == item.version:
                        del open_rows[item.row_id]
        found = sorted(open_rows)[:left]
        now = rows_now(shape=shape, wanted=dict.fromkeys(found, b""))
        for row_id in found:
            left -= 1
            yield RowFault(shape.number, row_id, LATER if row_id in known else UNBOUND, now[row_id].digest[:6])
        after = max(page)


def _all_parts(size: int) -> Iterator[BoundPart]:
    for start in range(0, size, RANGE):
        yield from parts_sealed(first=start, before=min(start + RANGE, size))
    yield from parts_unsealed()


def later_rows(rows: dict[RowKey, int], shapes: Shapes) -> list[RecordDifference]:
    """Those of these rows that no item covers in the version that they have now. Exact, and slow if there are many."""
    if not rows:
        return []
    tables = {shape.number: shape for shape in shapes.values()}
    newest: dict[RowKey, int] = {}
    for part in parts_that_name(row_ids=[key.row_id for key in rows]):
        for item in part.items():
            key = RowKey(item.number, item.row_id)
            newest[key] = max(item.version, newest.get(key, 0))
    found = []
    for key in rows:
        now = rows_now(shape=tables[key.number], wanted={key.row_id: b""}).get(key.row_id)
        if now is not None and now.version > newest.get(key, 0):
            found.append(named(RowFault(key.number, key.row_id, LATER, now.digest[:6]), tables))
    return found


def differences(compared: Compared, shapes: Shapes) -> list[RecordDifference]:
    """What a part of the record shows. Rows that are missing are looked for among all later deletions."""
    tables = {shape.number: shape for shape in shapes.values()}
    if compared.missing:
        for part in parts_with_deletions():
            for item in part.items():
                if item.deleted:
                    key = RowKey(item.number, item.row_id)
                    compared.deleted[key] = max(item.version, compared.deleted.get(key, 0))
    return [named(fault, tables) for fault in [*compared.faults, *compared.unexplained()]]


@dataclass(frozen=True, slots=True)
class NewChecked:
    """`counts`: rows per table number that all items up to `checked_to` account for."""

    checked_to: int
    counts: dict[int, int]
    faults: list[RecordDifference]


def record_new_verify(*, first: int, most: int, known: dict[int, int], put_in: Mapping[str, int]) -> NewChecked:
    """Compare what was sealed since `first`, at most so many leaves. When nothing is left, the tables are counted too:
    a row that was put in by hand has no entry, so only the count shows it. The caller holds one snapshot."""
    shapes = shapes_stored()
    with connection.cursor() as cursor:
        cursor.execute(SIZE)
        (size,) = cursor.fetchone()
    end = min(size, first + most)
    whole = Compared()
    for start in range(first, end, RANGE):
        whole.add(parts_compare(parts_sealed(first=start, before=min(start + RANGE, end)), shapes))
    counts = dict(known)
    for number, count in whole.inserted.items():
        counts[number] = counts.get(number, 0) + count
    found = differences(whole, shapes)
    if end == size:
        found += _uncounted(counts, shapes, size, put_in)
    return NewChecked(end, counts, found)


# Tables larger than this are not counted at every tick. Their unexplained rows are named by the full check.
MOST_COUNTED: Final = 200_000
SMALL: Final = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = ANY(%s) AND reltuples <= %s
"""


def _uncounted(counts: dict[int, int], shapes: Shapes, size: int, put_in: Mapping[str, int]) -> list[RecordDifference]:
    tables = {shape.number: shape for shape in shapes.values()}
    waiting = parts_compare(parts_unsealed(), shapes)
    with connection.cursor() as cursor:
        cursor.execute(SMALL, [[shape.table for shape in tables.values()], MOST_COUNTED])
        small = {row[0] for row in cursor.fetchall()}
    there = row_counts(tables=small)
    found = []
    for number, shape in tables.items():
        expected = counts.get(number, 0) + waiting.inserted.get(number, 0) + put_in.get(shape.table, 0)
        if shape.table in small and there[shape.table] > expected:
            found += [named(fault, tables) for fault in _uncovered(shape, size)]
    return found
