"""What a message may say about a review. There is no field for a target, a reference or metadata, on purpose."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.contracts.states import RiskTier


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    review_id: UUID
    title: str
    """The contract's title, or the name of the workflow's step: words of operators, checked when they were written."""
    kind: ReviewKind
    tiers: tuple[str, ...]
    risk: str
    status: ReviewStatus
    requested_at: datetime
    expires_at: datetime | None
    approvals: int
    approvals_required: int
    link: str
    """Opens the card after sign-in and decides nothing; empty where the installation has no public address."""

    @property
    def open(self) -> bool:
        return self.status is ReviewStatus.REQUESTED

    @property
    def decidable_in_chat(self) -> bool:
        """High risk needs a fresh sign-in, and a case needs looking at: both are decided on the page."""
        return self.open and self.kind is ReviewKind.RELEASE and self.risk != RiskTier.HIGH


def age(since: datetime, now: datetime) -> str:
    minutes = max(0, int((now - since).total_seconds() // 60))
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


def moment_in_words(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at is not None else "no deadline"
