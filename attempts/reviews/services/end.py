"""The only place that changes a review's status: how it ends, with its ledger entry. The caller holds the locks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attempts.lifecycle.hooks import review_ended
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import transition_apply
from attempts.notify.services.announce import cards_touch
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.selectors.reviews import LockedReview
from attempts.reviews.states import ReviewStatus
from governance.ledger.services import ledger_append
from reasoncodes.base.actors import CLOCK, Actor
from reasoncodes.base.errors import WrongState

ACTION_OF = {
    ReviewStatus.APPROVED: "review.approved",
    ReviewStatus.REJECTED: "review.rejected",
    ReviewStatus.CONFIRMED: "review.confirmed",
    ReviewStatus.OVERRIDDEN: "review.overridden",
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
    vote: ReviewVote | None = None,
) -> None:
    """A review ends once. Its claim ends with it. Who asked is told, unless it was they who ended it."""
    old = review.status
    if old != ReviewStatus.REQUESTED:
        raise WrongState(f"This review is {old}.")
    review.status = status.value
    review.decided_at = at
    review.claimed_by = None
    review.claimed_until = None
    review.save(update_fields=["status", "decided_at", "claimed_by", "claimed_until"])
    record_review(review, ACTION_OF[status], actor=actor, at=at, reason_code=reason_code, payload=payload)
    cards_touch(review)
    if status is not ReviewStatus.CANCELED:
        review_ended(review, old=old, vote=vote, actor=actor, at=at)


def review_end_expired(locked: LockedReview) -> None:
    """By the clock, at the deadline, whenever that is noticed. It denies."""
    review, at = locked.review, locked.review.expires_at
    if at is None:
        raise ValueError("a review without a deadline does not expire")
    review_end(review, ReviewStatus.EXPIRED, actor=CLOCK, at=at, reason_code="review_expired")
    if locked.attempt is not None:
        attempt_deny(locked.attempt, review, actor=CLOCK, at=at, reason_code="review_expired")


def attempt_deny(attempt: Attempt, review: Review, *, actor: Actor, at: datetime, reason_code: str) -> None:
    payload = {"review": str(review.id)}
    transition_apply(attempt, "deny", actor=actor, at=at, payload=payload, reason_code=reason_code)


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
        payload={**_about(review), "tier": review.tier, **(payload or {})},
        reason_code=reason_code,
    )


def _about(review: Review) -> dict[str, str]:
    if review.attempt_id is not None:
        return {"attempt": str(review.attempt_id)}
    return {"kind": review.kind, "origin_step": str(review.origin_step)}
