"""Gives back what a person holds whose access ends: their claims. Delegations end by `delegations_end_for`."""

from datetime import datetime
from uuid import UUID

from attempts.reviews.models import Review
from attempts.reviews.services.decide import record_review
from attempts.reviews.states import ReviewStatus
from reasoncodes.base.actors import Actor


def reviews_give_back(*, actor: Actor, at: datetime, user_id: UUID) -> dict[str, int]:
    """In the caller's transaction, before the person's row is locked: reviews come first in the lock order."""
    return {"claims": _claims(actor=actor, at=at, user_id=user_id)}


def _claims(*, actor: Actor, at: datetime, user_id: UUID) -> int:
    held = Review.objects.filter(claimed_by_id=user_id, status=ReviewStatus.REQUESTED).order_by("id")
    # NO KEY: votes that are inserted refer to the review and must not wait.
    found = list(held.select_for_update(no_key=True, of=("self",)))
    for review in found:
        review.claimed_by, review.claimed_until = None, None
        review.save(update_fields=["claimed_by", "claimed_until"])
        record_review(review, "review.released", actor=actor, at=at)
    return len(found)
