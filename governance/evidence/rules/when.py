"""When a bundle is made without being asked for, by the contract's document `durable_attempt_store`."""

from collections.abc import Mapping
from typing import Any

from governance.contracts.states import RiskTier
from governance.evidence.states import EvidenceKind

AT_END = "at_end"


def wanted_at_end(documents: Mapping[str, Any], *, kind: str, risk_tier: str) -> bool:
    """Whether a bundle is made when the attempt or run ends. If the contract does not say: for runs and high risk."""
    said = documents.get("durable_attempt_store", {}).get("evidence")
    if said is not None:
        return bool(said == AT_END)
    return kind == EvidenceKind.INSTANCE or risk_tier == RiskTier.HIGH
