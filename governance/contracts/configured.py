"""Settings of contracts: how many different people the ten approvals must come from, and whether decisions on high risk
are signed where a contract does not say."""

from django.conf import settings

from governance.contracts.states import RiskTier, SignatureKind


def signature_default(*, risk_tier: str) -> SignatureKind:
    """How votes are signed under a contract whose envelope document does not say: by the installation, for high risk
    only."""
    signed = bool(settings.SIGNED_APPROVALS) and risk_tier == RiskTier.HIGH
    return SignatureKind.PASSKEY if signed else SignatureKind.NONE


def readiness_people() -> int:
    # Never fewer than one: nobody would otherwise have to approve.
    return max(1, int(settings.READINESS_PEOPLE))
