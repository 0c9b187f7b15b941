"""Kinds and statuses of a review, and the verdicts of a vote."""

from enum import StrEnum


class ReviewKind(StrEnum):
    """What people are asked: to release a held attempt, or to judge a case for a workflow step."""

    RELEASE = "release"
    HUMAN_REVIEW = "human_review"


class ReviewStatus(StrEnum):
    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    CONFIRMED = "confirmed"
    OVERRIDDEN = "overridden"
    EXPIRED = "expired"
    CANCELED = "canceled"


class VoteVerdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    CONFIRM = "confirm"
    OVERRIDE = "override"
    DECLINE = "decline"


VERDICTS_OF: dict[ReviewKind, tuple[VoteVerdict, ...]] = {
    ReviewKind.RELEASE: (VoteVerdict.APPROVE, VoteVerdict.REJECT),
    ReviewKind.HUMAN_REVIEW: (VoteVerdict.CONFIRM, VoteVerdict.OVERRIDE, VoteVerdict.DECLINE),
}
# Verdicts that give what was asked for. The others refuse it, and need a reason code.
FULFILLING: frozenset[str] = frozenset({VoteVerdict.APPROVE, VoteVerdict.CONFIRM, VoteVerdict.OVERRIDE})
