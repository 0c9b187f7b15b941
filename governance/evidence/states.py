"""States and transitions of evidence bundles as data, for services, database triggers and tests."""

from enum import StrEnum


class EvidenceState(StrEnum):
    REQUESTED = "requested"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    ERASED = "erased"  # by an order that erased something in it; the file is removed


EVIDENCE_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        *(("requested", "building"), ("requested", "failed"), ("building", "ready"), ("building", "failed")),
        *((state, "erased") for state in ("requested", "building", "ready", "failed")),
    }
)


class EvidenceKind(StrEnum):
    ATTEMPT = "attempt"
    INSTANCE = "instance"
