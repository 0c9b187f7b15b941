"""Kinds and statuses of a review, the verdicts of a vote, and states and ends of a delegation."""

from enum import StrEnum


class ReviewKind(StrEnum):
    """What people are asked: to release a held attempt, to judge a case for a workflow step, or to do a task of one,
    which has outcomes of its own."""

    RELEASE = "release"
    HUMAN_REVIEW = "human_review"
    HUMAN_TASK = "human_task"


class ReviewStatus(StrEnum):
    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    CONFIRMED = "confirmed"
    OVERRIDDEN = "overridden"
    DECIDED = "decided"
    EXPIRED = "expired"
    CANCELED = "canceled"


class VoteVerdict(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    CONFIRM = "confirm"
    OVERRIDE = "override"
    DECLINE = "decline"
    ANSWER = "answer"
    """In a task: one of its outcomes, which the vote names."""


VERDICTS_OF: dict[ReviewKind, tuple[VoteVerdict, ...]] = {
    ReviewKind.RELEASE: (VoteVerdict.APPROVE, VoteVerdict.REJECT),
    ReviewKind.HUMAN_REVIEW: (VoteVerdict.CONFIRM, VoteVerdict.OVERRIDE, VoteVerdict.DECLINE),
    ReviewKind.HUMAN_TASK: (VoteVerdict.ANSWER, VoteVerdict.DECLINE),
}
# How a task ends by an outcome that has a name of its own elsewhere; by any other it is decided.
END_OF_OUTCOME: dict[str, ReviewStatus] = {"approve": ReviewStatus.APPROVED, "reject": ReviewStatus.REJECTED}
# Verdicts that give what was asked for. The others refuse it, and need a reason code.
FULFILLING: frozenset[str] = frozenset(
    {VoteVerdict.APPROVE, VoteVerdict.CONFIRM, VoteVerdict.OVERRIDE, VoteVerdict.ANSWER}
)


class DelegationState(StrEnum):
    """Derived from the times of a delegation; not a column."""

    PLANNED = "planned"
    ACTIVE = "active"
    ENDED = "ended"


class DelegationEnd(StrEnum):
    """Why a delegation ended."""

    BY_DELEGATOR = "by_delegator"
    BY_DELEGATE = "by_delegate"
    BY_OPERATOR = "by_operator"
    ROLE_TAKEN = "role_taken"
    DEACTIVATED = "deactivated"
    RAN_OUT = "ran_out"
    UPGRADE = "upgrade"
    """It was given before delegations had reasons, perhaps to somebody without the tier. The migration ended it."""
