"""Upward calls: who knows the rows that belong into a bundle. The apps above register in their `apps.py`."""

from typing import Protocol
from uuid import UUID

from governance.evidence.rules import Material


class Collector(Protocol):
    """For one kind of subject. All calls are in the caller's tenant scope; somebody else's subject does not exist."""

    def organization(self, *, subject_id: UUID) -> UUID: ...

    def record(self, *, subject_id: UUID) -> frozenset[UUID]:
        """Ids whose ledger entries are about the subject."""
        ...

    def collect(self, *, subject_id: UUID) -> Material:
        """In the caller's transaction, with the subject locked: the rows must not move while they are read."""
        ...


_collectors: dict[str, Collector] = {}


def register_collector(kind: str, collector: Collector) -> None:
    _collectors[kind] = collector


def collector_for(kind: str) -> Collector:
    return _collectors[kind]
