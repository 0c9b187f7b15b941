"""What a message says about a review: what is asked, as on the page. It has no field for other metadata or for the
patient context, because messages leave Holdpoint. Pure."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from attempts.reviews.rules import AskedAction
from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.contracts.states import RiskTier


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    review_id: UUID
    title: str
    """The title of the contract or of the workflow step: text of operators, checked when it was written."""
    kind: ReviewKind
    tiers: tuple[str, ...]
    risk: str
    status: ReviewStatus
    requested_at: datetime
    expires_at: datetime | None
    approvals: int
    approvals_required: int
    asked: AskedAction | None
    """None: a human review of a workflow step, which has no action."""
    link: str
    """Opens the card after sign-in and decides nothing; empty if the installation has no public URL."""

    @property
    def open(self) -> bool:
        return self.status is ReviewStatus.REQUESTED

    @property
    def decidable_in_chat(self) -> bool:
        """High risk needs a fresh sign-in, and a case must be looked at: both are decided only on the page."""
        return self.open and self.kind is ReviewKind.RELEASE and self.risk != RiskTier.HIGH


def age(since: datetime, now: datetime) -> str:
    minutes = max(0, int((now - since).total_seconds() // 60))
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


def moment_in_words(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at is not None else "none"
