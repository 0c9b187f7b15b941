"""Collectors: the apps above register in their `apps.py` how to read the rows that belong in a bundle. This app may not
import them."""

from typing import Protocol
from uuid import UUID

from governance.evidence.rules import Material


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


_collectors: dict[str, Collector] = {}


def register_collector(kind: str, collector: Collector) -> None:
    _collectors[kind] = collector


def collector_for(kind: str) -> Collector:
    return _collectors[kind]
