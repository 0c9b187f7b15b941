"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class HoldScope(StrEnum):
    """What a legal hold keeps: everything of an organization, of a contract, about a context reference or a person, or
    one attempt or run."""

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
    """Why a person ordered it: retention is over, or somebody asked to be forgotten."""

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


# An accepted request is refused after all when a hold was faster than its erasure.
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
