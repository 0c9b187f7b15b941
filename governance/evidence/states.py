"""States and transitions of evidence bundles as data, for services, database triggers and tests."""

from enum import StrEnum


class EvidenceState(StrEnum):
    REQUESTED = "requested"
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    REFUSED = "refused"  # a row differs from what the ledger says about it; nothing was built
    ERASED = "erased"  # by an order that erased something in it; the file is removed


# The first migration of bundles makes its trigger from these, so they stay as they are; `REFUSAL_MOVES` came later.
EVIDENCE_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        *(("requested", "building"), ("requested", "failed"), ("building", "ready"), ("building", "failed")),
        *((state, "erased") for state in ("requested", "building", "ready", "failed")),
    }
)


REFUSAL_MOVES = frozenset({("requested", "refused"), ("building", "refused"), ("refused", "erased")})


class EvidenceKind(StrEnum):
    ATTEMPT = "attempt"
    INSTANCE = "instance"
