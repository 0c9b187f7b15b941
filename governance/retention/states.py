"""States and transitions of legal holds, erasure items, deletions and exports as data, for models, database triggers
and tests."""

from enum import StrEnum


class HoldScope(StrEnum):
    """What a legal hold covers: an organization, a contract, a context reference, a person, one attempt or one run."""

    ORGANIZATION = "organization"
    CONTRACT = "contract"
    CONTEXT = "context"
    ATTEMPT = "attempt"
    RUN = "run"
    PERSON = "person"


class HoldState(StrEnum):
    ACTIVE = "active"
    RELEASED = "released"


HOLD_MOVES: frozenset[tuple[str, str]] = frozenset({("active", "released")})


class ErasureKind(StrEnum):
    """Why a person ordered an erasure: retention is over, or a deletion was requested."""

    PURGE = "purge"
    DELETION = "deletion"


class ItemState(StrEnum):
    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"


ITEM_MOVES: frozenset[tuple[str, str]] = frozenset({("waiting", "done"), ("waiting", "refused")})


class DeletionState(StrEnum):
    REQUESTED = "requested"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    DONE = "done"


# An accepted request is still refused if a legal hold was placed before its erasure.
DELETION_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("requested", "accepted"), ("requested", "refused"), ("accepted", "done"), ("accepted", "refused")}
)


class ExportState(StrEnum):
    REQUESTED = "requested"
    READY = "ready"
    FAILED = "failed"
    EXPIRED = "expired"


EXPORT_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("requested", "ready"), ("requested", "failed"), ("ready", "expired")}
)
