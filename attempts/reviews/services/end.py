"""Ends reviews: no other module changes a review's status. Also writes the ledger entries about reviews.

The caller has locked the attempt, if there is one, and the review.
"""

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
    """Ends an open review and its claim, with a ledger entry, and refreshes its cards in the chat."""
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
    # Handlers are called only for human reviews of a workflow step (`origin_step`). The review of a held attempt has no
    # step: if a step opened that attempt, the attempt's own transition tells the engine. A canceled review of a step
    # calls none: the engine itself canceled it.
    if status is not ReviewStatus.CANCELED:
        review_ended(review, old=old, vote=vote, actor=actor, at=at)


def review_end_expired(locked: LockedReview) -> None:
    """Ends an overdue review and denies its attempt. The recorded time is the deadline, not when it was noticed."""
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
    """Cancels the open review of an attempt that ends otherwise; None if there is none. The caller has locked the
    attempt and changes its state."""
    # Attempt before review, the lock order everywhere: the other way round this could deadlock with a vote.
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
    """Writes one ledger entry about a review."""
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
