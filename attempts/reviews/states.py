"""States and moves of an attempt, as data: model, database trigger and tests read the same (S1, exactly these)."""

from enum import StrEnum


class ReviewKind(StrEnum):
    """What is asked of people: to release an action, or to judge a case on a workflow's behalf."""

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
# The verdicts by which a person gives what was asked of them; the others refuse it.
FULFILLING: frozenset[str] = frozenset({VoteVerdict.APPROVE, VoteVerdict.CONFIRM, VoteVerdict.OVERRIDE})
