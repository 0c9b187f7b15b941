"""Claims and releases reviews, and moves claims to a delegate.

A claim keeps two people from working on one review. If only one approval is needed, others get 409 until it ends; if
more are needed, it is only shown to them. It does not stop a review from expiring.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from attempts.reviews.errors import ReviewClaimed, ReviewExpired, ReviewOver
from attempts.reviews.models import Delegation, Review
from attempts.reviews.selectors.reviews import LockedReview, actor_at, claimed_by_other, database_now, review_lock
from attempts.reviews.selectors.standing import refusal_of, standing_of
from attempts.reviews.services.decide import claim_drop, record_review
from attempts.reviews.states import ReviewStatus
from governance.ledger.services import person_commitment
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import WrongState

CLAIM = timedelta(minutes=15)  # ends by itself, so that a person who leaves does not block the review


def review_claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    """Claims a review for a person who may decide it. Claiming again renews the claim."""
    return _claim(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id)


@violations_recorded
def _claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    with transaction.atomic():
        # Under the lock: without it two people could both find the review unclaimed.
        locked = review_lock(review_id=review_id)
        now = database_now()
        review, person = locked.review, actor.id if actor.kind is ActorKind.PERSON else None
        standing = standing_of(review=review, attempt=locked.attempt, person=person, now=now)
        refusal = refusal_of(review=review, attempt=locked.attempt, standing=standing, now=now)
        if isinstance(refusal, ReviewOver | ReviewExpired):
            # Not the refusal itself: that would be recorded as a violation, and claiming too late breaks no rule.
            raise WrongState("This review has ended.")
        if refusal is not None:
            raise refusal
        if claimed_by_other(review, person=person, now=now):
            raise ReviewClaimed
        review.claimed_by_id = person
        review.claimed_until = now + CLAIM
        review.save(update_fields=["claimed_by", "claimed_until"])
        record_review(review, "review.claimed", actor=actor, at=at, payload={"until": review.claimed_until.isoformat()})
    return review


def review_release(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    """Ends the actor's own claim. Nobody can end the claim of another person."""
    actor = actor_at(actor=actor, review_id=review_id)
    with transaction.atomic():
        locked = review_lock(review_id=review_id)
        now, review = database_now(), locked.review
        _require_open(locked, now)
        if review.claimed_by_id is None or review.claimed_by_id != actor.id:
            if claimed_by_other(review, person=actor.id, now=now):
                raise ReviewClaimed
            raise WrongState("You have not claimed this review.")
        review.claimed_by, review.claimed_until = None, None
        review.save(update_fields=["claimed_by", "claimed_until"])
        record_review(review, "review.released", actor=actor, at=at)
    return review


def _require_open(locked: LockedReview, now: datetime) -> None:
    if not locked.is_open or locked.overdue(now):
        raise WrongState("This review has ended.")


def claims_lock(*, organization_id: UUID, people: Iterable[UUID], tier: str) -> list[LockedReview]:
    """The open reviews of the tier that these people have claimed, locked in the order of ids."""
    rows = Review.objects.filter(
        organization_id=organization_id,
        status=ReviewStatus.REQUESTED,
        claimed_by_id__in=list(people),
        claimed_until__gt=database_now(),
    )
    concerned = [row.id for row in rows.order_by("id") if any(part["tier"] == tier for part in row.parts)]
    return [review_lock(review_id=id_) for id_ in concerned]


def claim_move(locked: LockedReview, delegation: Delegation, *, actor: Actor, at: datetime, now: datetime) -> None:
    """Moves a claim of the person who delegates to the delegate, until it would have ended; or drops it, if the
    delegate may not decide there."""
    review, until, to = locked.review, locked.review.claimed_until, delegation.to_user_id
    if review.claimed_by_id != delegation.from_user_id or not locked.is_open:
        return
    claim_drop(review)
    payload = {"delegation": str(delegation.id), "to": person_commitment(user_id=to)}
    standing = standing_of(review=review, attempt=locked.attempt, person=to, now=now)
    if refusal_of(review=review, attempt=locked.attempt, standing=standing, now=now) is not None:
        record_review(review, "review.released", actor=actor, at=at, payload=payload)
        return
    review.claimed_by_id, review.claimed_until = to, until
    review.save(update_fields=["claimed_by", "claimed_until"])
    record_review(review, "review.claim_moved", actor=actor, at=at, payload=payload)
