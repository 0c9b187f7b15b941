"""Collectors: the apps above register in their `apps.py` how to read the rows that belong in a bundle. This app may not
import them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from governance.evidence.rules import Material

FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class EndedSubject:
    """An attempt or run that has ended, with what decides whether it gets a bundle by itself."""

    id: UUID
    contract_id: UUID | None
    risk_tier: str


class Collector(Protocol):
    """For one kind of subject. Calls run in the caller's tenant scope: subjects of other organizations do not exist."""

    def organization(self, *, subject_id: UUID) -> UUID: ...

    def record(self, *, subject_id: UUID) -> frozenset[UUID]:
        """The ids whose ledger entries are about the subject."""
        ...

    def collect(self, *, subject_id: UUID) -> Material:
        """All rows about the subject, in the caller's transaction and with the subject locked: otherwise a change
        between two reads would give a bundle that contradicts itself."""
        ...

    def ended(self, *, subject_id: UUID) -> EndedSubject | None:
        """None: it has not ended, or the bundle of something else covers it. Raises NotFound."""
        ...

    def ended_without(
        self, *, between: tuple[datetime, datetime], contracts: Sequence[UUID], limit: int, after: UUID = FIRST
    ) -> list[EndedSubject]:
        """Subjects that ended between these times under these contracts and have no bundle, by id, after this one."""
        ...


_collectors: dict[str, Collector] = {}


def register_collector(kind: str, collector: Collector) -> None:
    _collectors[kind] = collector


def collector_for(kind: str) -> Collector:
    return _collectors[kind]
