"""What a message says about a review: what is asked, as on the page. It has no field for other metadata or for the
patient context, because messages leave Holdpoint. Pure."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from attempts.reviews.rules import AskedAction, asked_lines
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
    notices: tuple[tuple[str, str], ...]
    """What a reviewer must know before anything else: that it is held again, that it was asked for twice."""
    link: str
    """Opens the card after sign-in and decides nothing; empty if the installation has no public URL."""

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Label and text of each line about what is asked."""
        return [*self.notices, *(asked_lines(self.asked) if self.asked is not None else [])]

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


def held_again_words(*, released: bool, tries: int) -> tuple[str, str]:
    """Label and text for an attempt that was let through before, and needs more now."""
    before = "It was released before" if released else "It was allowed without a review when it came in"
    sent = f"and tried {tries} time{'s' if tries > 1 else ''}" if tries else "and nothing was sent yet"
    return "Held again", f"{before}, {sent}. The policy in force now asks for more."


def asked_twice_words(before: int) -> tuple[str, str] | None:
    """`before`: how many asked for the same effect under other keys."""
    if before < 1:
        return None
    keys = "another key" if before == 1 else f"{before} other keys"
    return "Asked twice", f"The same effect was asked for before, under {keys}. The card lists the attempts."
