"""Gives back what a person holds whose access ends: their claims, and the delegations from them and to them."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from attempts.reviews.models import Delegation, Review
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services.decide import record_review
from attempts.reviews.states import ReviewStatus
from governance.ledger.services import ledger_append, person_commitment
from reasoncodes.base.actors import Actor


def reviews_give_back(*, actor: Actor, at: datetime, user_id: UUID) -> dict[str, int]:
    """In the caller's transaction, before the person's row is locked: reviews come first in the lock order."""
    return {
        "claims": _claims(actor=actor, at=at, user_id=user_id),
        "delegations": _delegations(actor=actor, at=at, user_id=user_id),
    }


def _claims(*, actor: Actor, at: datetime, user_id: UUID) -> int:
    held = Review.objects.filter(claimed_by_id=user_id, status=ReviewStatus.REQUESTED).order_by("id")
    # NO KEY: votes that are inserted refer to the review and must not wait.
    found = list(held.select_for_update(no_key=True, of=("self",)))
    for review in found:
        review.claimed_by, review.claimed_until = None, None
        review.save(update_fields=["claimed_by", "claimed_until"])
        record_review(review, "review.released", actor=actor, at=at)
    return len(found)


def _delegations(*, actor: Actor, at: datetime, user_id: UUID) -> int:
    now = database_now()
    mine = Q(from_user_id=user_id) | Q(to_user_id=user_id)
    found = list(Delegation.objects.select_for_update(no_key=True).filter(mine, ends_at__gt=now).order_by("id"))
    for delegation in found:
        # The table refuses one without length, also one that has not begun yet.
        delegation.ends_at = max(now, delegation.starts_at + timedelta(microseconds=1))
        delegation.save(update_fields=["ends_at"])
        ledger_append(
            action="review.delegation_ended",
            organization_id=delegation.organization_id,
            subject_type="delegation",
            subject_id=delegation.id,
            actor=actor,
            at=at,
            payload={"tier": delegation.tier, "from": person_commitment(user_id=delegation.from_user_id)},
        )
    return len(found)
