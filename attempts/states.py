"""States and moves of an attempt, as data: model, database trigger and tests read the same (S1, exactly these)."""

from enum import StrEnum
from typing import Any

ENGINE = "workflow-engine"  # the account in whose name the engine opens attempts


class AttemptState(StrEnum):
    RECEIVED = "received"
    DEDUPLICATED = "deduplicated"
    PREFLIGHT_DENIED = "preflight-denied"
    REVIEW_REQUIRED = "review-required"
    APPROVED = "approved-for-execution"
    COMPLETED = "completed"
    QUARANTINED = "failed-quarantined"


ATTEMPT_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        ("received", "deduplicated"),
        ("deduplicated", "preflight-denied"),
        ("deduplicated", "review-required"),
        ("deduplicated", "approved-for-execution"),
        ("review-required", "approved-for-execution"),
        ("review-required", "preflight-denied"),
        ("approved-for-execution", "completed"),
        ("approved-for-execution", "failed-quarantined"),
        ("approved-for-execution", "preflight-denied"),
    }
)
FINAL_STATES: frozenset[str] = frozenset({"preflight-denied", "completed", "failed-quarantined"})


class RuntimeMode(StrEnum):
    ACTIVE = "active"
    CLIENT_DRIVEN = "client_driven"
    SHADOW = "shadow"


class SlotScope(StrEnum):
    KEY = "key"
    CONTEXT = "context"
    WORKFLOW = "workflow"
    TENANT = "tenant"


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


class ReceiptOutcome(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"


class QuarantineCategory(StrEnum):
    OUTCOME_UNKNOWN = "outcome_unknown"
    ADAPTER_FAILURE = "adapter_failure"
    TIMEOUT = "timeout"
    INVALID_RESPONSE = "invalid_response"
    POLICY_CHANGED = "policy_changed"
    LEASE_LOST = "lease_lost"


class Finding(StrEnum):
    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"


class Resolution(StrEnum):
    RETRY_AUTHORIZED = "retry_authorized"
    COMPENSATED = "compensated"
    ACCEPTED = "accepted"
    INCIDENT = "incident"


def is_ours_to_execute(attempt: Any) -> bool:
    """Released, and Holdpoint itself calls the adapter: not the caller's own doing, and no shadow."""
    return bool(
        attempt.state == AttemptState.APPROVED
        and attempt.next_eligible_at is not None
        and attempt.runtime_mode == RuntimeMode.ACTIVE
        and attempt.connector != "external"
    )


class NotifyChannel(StrEnum):
    SLACK = "slack"
    EMAIL = "email"


class RouteState(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"


class NotifyKind(StrEnum):
    """An approval card in a chat, a mail to one person, a reminder before the deadline, and one to the operators."""

    CARD = "card"
    MAIL = "mail"
    REMINDER = "reminder"
    ESCALATION = "escalation"


class DeliveryState(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # given up; a person may send it again
    DROPPED = "dropped"  # nobody needs it any more: the review ended first, or the person left
    STOPPED = "stopped"  # its route is disabled; goes on when the route is enabled


class MailMode(StrEnum):
    """What a person chose. `route`: as the operator set it."""

    ROUTE = "route"
    EACH = "each"
    DIGEST = "digest"
    OFF = "off"
