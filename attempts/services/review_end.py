"""The only place that writes a review's status: how a hold ends, with its ledger entry. The caller holds the locks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attempts.models import Attempt, Review
from attempts.selectors.review import Held
from attempts.services.transition import transition_apply
from attempts.states import ReviewStatus
from governance.ledger.append import ledger_append
from reasoncodes.actors import CLOCK, Actor
from reasoncodes.errors import WrongState

ACTION_OF = {
    ReviewStatus.APPROVED: "review.approved",
    ReviewStatus.REJECTED: "review.rejected",
    ReviewStatus.EXPIRED: "review.expired",
    ReviewStatus.CANCELED: "review.canceled",
}


def review_end(
    review: Review,
    status: ReviewStatus,
    *,
    actor: Actor,
    at: datetime,
    reason_code: str = "",
    payload: Mapping[str, Any] | None = None,
) -> None:
    """A review ends once. Its claim ends with it."""
    if review.status != ReviewStatus.REQUESTED:
        raise WrongState(f"This review is {review.status}.")
    review.status = status.value
    review.decided_at = at
    review.claimed_by = None
    review.claimed_until = None
    review.save(update_fields=["status", "decided_at", "claimed_by", "claimed_until"])
    record_review(review, ACTION_OF[status], actor=actor, at=at, reason_code=reason_code, payload=payload)


def review_end_expired(held: Held) -> None:
    """By the clock, at the deadline, whenever that is noticed. It denies."""
    review, at = held.review, held.review.expires_at
    review_end(review, ReviewStatus.EXPIRED, actor=CLOCK, at=at, reason_code="review_expired")
    attempt_deny(held, actor=CLOCK, at=at, reason_code="review_expired")


def attempt_deny(held: Held, *, actor: Actor, at: datetime, reason_code: str) -> None:
    payload = {"review": str(held.review.id)}
    transition_apply(held.attempt, "deny", actor=actor, at=at, payload=payload, reason_code=reason_code)


def review_cancel(*, attempt: Attempt, actor: Actor, at: datetime, reason_code: str) -> Review | None:
    """For whoever ends a held attempt otherwise, inside their transaction and with the attempt locked: None when there
    is no open review. The caller moves the attempt."""
    review = Review.objects.select_for_update(no_key=True, of=("self",)).filter(attempt=attempt).first()
    if review is None or review.status != ReviewStatus.REQUESTED:
        return None
    review_end(review, ReviewStatus.CANCELED, actor=actor, at=at, reason_code=reason_code)
    return review


def record_review(
    review: Review,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    reason_code: str = "",
    payload: Mapping[str, Any] | None = None,
) -> None:
    """One ledger entry about a review."""
    ledger_append(
        action=action,
        organization_id=review.organization_id,
        subject_type="review",
        subject_id=review.id,
        actor=actor,
        at=at,
        payload={"attempt": str(review.attempt_id), "tier": review.tier, **(payload or {})},
        reason_code=reason_code,
    )
