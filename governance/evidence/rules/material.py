"""The rows of a bundle in the form in which the apps that own them deliver them: plain JSON values, oldest first."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

Row = dict[str, Any]
# Canonical JSON has no larger integers: readers that use doubles would see another number.
_SAFE_INTEGER = 2**53 - 1


@dataclass(frozen=True, slots=True)
class BundleSubject:
    """The subject of a bundle: an attempt or a run."""

    kind: str
    id: UUID
    title: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "id": str(self.id)}


@dataclass(frozen=True, slots=True)
class Person:
    """The person or service behind a reference. A person's `opening` (id and salt) is gone after their
    `PersonReference` was destroyed."""

    kind: str
    reference: str
    name: str = ""
    opening: dict[str, str] | None = None

    def as_json(self) -> Row:
        if self.kind == "person":
            opening = None if self.opening is None else {**self.opening, "name": self.name}
            return {"kind": self.kind, "reference": self.reference, "opening": opening}
        return {"kind": self.kind, "reference": self.reference, "name": self.name}


@dataclass(frozen=True, slots=True)
class Material:
    """Rows by the file they go into. `record`: the ids whose ledger entries belong to the subject."""

    subject: BundleSubject
    organization_id: UUID
    record: frozenset[UUID]
    decisions: tuple[UUID, ...]
    attempts: list[Row] = field(default_factory=list)
    transitions: list[Row] = field(default_factory=list)
    reviews: list[Row] = field(default_factory=list)
    votes: list[Row] = field(default_factory=list)
    intents: list[Row] = field(default_factory=list)
    receipts: list[Row] = field(default_factory=list)
    quarantine: list[Row] = field(default_factory=list)
    instance: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    interventions: list[Row] = field(default_factory=list)
    snapshots: tuple[str, ...] = ()
    """Hashes of further snapshots that belong in the bundle."""
    picture: str = ""
    """Inline SVG of the run's way through its graph, if there is one; `picture_style` is its CSS."""
    picture_style: str = ""


def canonical_plain(value: Any) -> Any:
    """A value for canonical JSON: times in UTC with microseconds, ids and too large integers as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, dict):
        return {str(key): canonical_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [canonical_plain(one) for one in value]
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return value
    if isinstance(value, int):
        return value if -_SAFE_INTEGER <= value <= _SAFE_INTEGER else str(value)
    return str(value)
