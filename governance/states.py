"""States and moves of this app's machines, as data: models, database triggers and tests read the same tables."""

from enum import StrEnum


class ContractState(StrEnum):
    DRAFT = "draft"
    OPEN = "open"
    SUSPENDED = "suspended"
    RETIRED = "retired"


CONTRACT_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        ("draft", "open"),
        ("draft", "retired"),
        ("open", "suspended"),
        ("open", "retired"),
        ("suspended", "open"),
        ("suspended", "retired"),
    }
)


class PolicyState(StrEnum):
    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


POLICY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {("draft", "active"), ("active", "archived"), ("draft", "archived")}
)


class ShutdownState(StrEnum):
    ENGAGED = "engaged"
    RELEASED = "released"


SHUTDOWN_MOVES: frozenset[tuple[str, str]] = frozenset({("engaged", "released")})


class ShutdownScope(StrEnum):
    GLOBAL = "global"
    ORGANIZATION = "organization"
    CONTRACT = "contract"
    CONNECTOR = "connector"
    REGION = "region"


class Effect(StrEnum):
    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class RiskTier(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class AdapterName(StrEnum):
    EVENT = "event"
    HTTP = "http"
    EMAIL = "email"
    SLACK = "slack"
    EXTERNAL = "external"


# What an adapter can prove about its calls; a contract may declare the same or something stricter.
ADAPTER_EFFECT: dict[str, Effect] = {
    AdapterName.EVENT: Effect.IDEMPOTENT,
    AdapterName.HTTP: Effect.IDEMPOTENT,
    AdapterName.EMAIL: Effect.ONCE,
    AdapterName.SLACK: Effect.ONCE,
    AdapterName.EXTERNAL: Effect.NONE,
}
STRICTNESS: dict[str, int] = {Effect.NONE: 0, Effect.IDEMPOTENT: 1, Effect.ONCE: 2}


class ReadinessVerdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    REVOKE = "revoke"


class ViolationKind(StrEnum):
    CROSS_TENANT = "cross_tenant"
    RECORD_MUTATION = "record_mutation"
    UNAUTHORIZED_DECISION = "unauthorized_decision"
    OWN_WORK_APPROVED = "own_work_approved"
    STALE_LEASE = "stale_lease"
    SECOND_PERSON_MISSING = "second_person_missing"


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


class WitnessResult(StrEnum):
    STORED = "stored"
    FAILED = "failed"
    REFUSED = "refused"


class ReadDoor(StrEnum):
    API = "api"
    CONSOLE = "console"


LEDGER_INCONSISTENT = "ledger_inconsistent"
"""The reason code and the target of the global shutdown that the program engages itself: deny mode."""


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
