"""Contract states and their legal moves, effects, risk tiers, signatures, adapters and readiness verdicts. Models,
database triggers and tests read these tables."""

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


class Effect(StrEnum):
    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class RiskTier(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SignatureKind(StrEnum):
    """How people sign their votes on held attempts of a contract."""

    NONE = "none"
    PASSKEY = "passkey"


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
