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


@dataclass(frozen=True, slots=True)
class RowFault:
    """One row that is not what the ledger says. `what` is a sentence without values."""

    number: int
    row_id: bytes
    what: str

    @property
    def key(self) -> RowKey:
        return RowKey(self.number, self.row_id)


CHANGED = "the row was changed: the ledger has another digest for this version"
OLDER = "an older copy of the row was put back: the ledger has a later version"
MISSING = "the row is gone, and no entry says that it was deleted"
UNBOUND = "no entry of the ledger covers the row: it was put in by hand"
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

    def add(self, other: "Compared") -> None:
        self.items += other.items
        for number, count in other.current.items():
            self.current[number] = self.current.get(number, 0) + count
        for number, count in other.inserted.items():
            self.inserted[number] = self.inserted.get(number, 0) + count
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
        what = _judge(item, found)
        if what:
            result.faults.append(RowFault(item.number, item.row_id, what))
        elif next(iter(found.values())).version == item.version:
            result.current[item.number] = result.current.get(item.number, 0) + 1
    return result


def _judge(item: BoundItem, found: Mapping[bytes, Found]) -> str:
    """What is wrong with a row that is there; empty if nothing is."""
    version = next(iter(found.values())).version
    if version > item.version:
        return ""  # a later item covers it
    if version < item.version:
        return OLDER
    if item.salt == FORGOTTEN:
        return UNSALTED
    same = found.get(item.salt or b"")
    return "" if same is not None and same.digest == item.digest else CHANGED


def row_name(row_id: bytes, key_kind: str) -> str:
    """How people find the row: its id as its table writes it."""
    match key_kind:
        case "uuid":
            return str(UUID(bytes=row_id))
        case "int":
            return str(int.from_bytes(row_id))
        case _:
            return row_id.hex()
