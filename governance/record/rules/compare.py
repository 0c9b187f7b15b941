"""Compares bound items with the rows as they are now. Pure: what was read goes in, what differs comes out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

from governance.record.rules.items import FORGOTTEN, BoundItem


class RowKey(NamedTuple):
    number: int
    row_id: bytes


class Found(Protocol):
    @property
    def version(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def mark(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RowFault:
    """One row that is not what the ledger says. `what` is a sentence without values."""

    number: int
    row_id: bytes
    what: str
    now: bytes = b""
    """The start of the digest that the row has now. A row that is changed once more is another fault."""

    @property
    def key(self) -> RowKey:
        return RowKey(self.number, self.row_id)


CHANGED = "the row was changed: the ledger has another digest for this version"
OLDER = "an older copy of the row was put back: the ledger has a later version"
MISSING = "the row is gone, and no entry says that it was deleted"
UNBOUND = "no entry of the ledger covers the row: it was put in by hand"
LATER = "the row was changed: its version is later than any that the ledger has"
UNSALTED = "the salt of its digest was destroyed, but no erasure followed"
RETURNED = "the row was deleted, and it is there again"


@dataclass(slots=True)
class Compared:
    """`current`: rows that match their newest item, per table. `missing` items need a later deletion; `deleted` has the
    deletions: both are brought together when all ranges are compared."""

    items: int = 0
    current: dict[int, int] = field(default_factory=dict)
    faults: list[RowFault] = field(default_factory=list)
    missing: dict[RowKey, int] = field(default_factory=dict)
    deleted: dict[RowKey, int] = field(default_factory=dict)
    inserted: dict[int, int] = field(default_factory=dict)
    """Rows that came minus rows that went, per table, as the items say."""
    marks: dict[int, int] = field(default_factory=dict)
    """Sum of the marks of `current`, per table. With the count alone, an item that is there twice could hide a row."""
    later: dict[RowKey, int] = field(default_factory=dict)
    """Rows that are newer than the items compared here: another item must cover the version that they have."""
    met: set[RowKey] = field(default_factory=set)
    """Rows of more than one version that match an item compared here."""

    def add(self, other: "Compared") -> None:
        self.items += other.items
        for number, count in other.current.items():
            self.current[number] = self.current.get(number, 0) + count
        for number, count in other.inserted.items():
            self.inserted[number] = self.inserted.get(number, 0) + count
        for number, mark in other.marks.items():
            self.marks[number] = self.marks.get(number, 0) + mark
        self.faults += other.faults
        for mine, theirs in ((self.missing, other.missing), (self.deleted, other.deleted)):
            for key, version in theirs.items():
                mine[key] = max(version, mine.get(key, 0))

    def unexplained(self) -> list[RowFault]:
        """Rows that are gone without a deletion. Only right when every item up to now was compared."""
        return [
            RowFault(key.number, key.row_id, MISSING)
            for key, version in sorted(self.missing.items())
            if self.deleted.get(key, 0) <= version
        ]


def items_compare(items: Iterable[BoundItem], now: Mapping[RowKey, Mapping[bytes, Found]]) -> Compared:
    """`now`: for each row the digests that it has, by salt (empty without one). A row that is not in it is missing."""
    result = Compared()
    for item in items:
        result.items += 1
        key = RowKey(item.number, item.row_id)
        found = now.get(key)
        if item.deleted:
            result.deleted[key] = max(item.version, result.deleted.get(key, 0))
            result.inserted[item.number] = result.inserted.get(item.number, 0) - 1
            if found:
                result.faults.append(RowFault(item.number, item.row_id, RETURNED))
            continue
        if item.version == 1:
            result.inserted[item.number] = result.inserted.get(item.number, 0) + 1
        if not found:
            result.missing[key] = max(item.version, result.missing.get(key, 0))
            continue
        one = found.get(item.salt or b"") or next(iter(found.values()))
        what = _judge(item, one)
        if what:
            result.faults.append(RowFault(item.number, item.row_id, what, one.digest[:6]))
        elif one.version > item.version:
            result.later[key] = one.version
        else:
            result.current[item.number] = result.current.get(item.number, 0) + 1
            result.marks[item.number] = result.marks.get(item.number, 0) + one.mark
            if item.version > 1:
                result.met.add(key)
    for key in result.met:
        result.later.pop(key, None)
    return result


def _judge(item: BoundItem, found: Found) -> str:
    """What is wrong with a row that is there; empty if nothing is, or if it is newer: then another item covers it."""
    if found.version > item.version:
        return ""
    if found.version < item.version:
        return OLDER
    if item.salt == FORGOTTEN:
        return UNSALTED
    return "" if found.digest == item.digest else CHANGED


def row_name(row_id: bytes, key_kind: str) -> str:
    """How people find the row: its id as its table writes it."""
    match key_kind:
        case "uuid":
            return str(UUID(bytes=row_id))
        case "int":
            return str(int.from_bytes(row_id))
        case _:
            return row_id.hex()
