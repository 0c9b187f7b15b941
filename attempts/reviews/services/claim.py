"""Claims and releases reviews, and delegates a tier to another person.

A claim keeps two people from working on one review. If only one approval is needed, others get 409 until it ends; if
more are needed, it is only shown to them. It does not stop a review from expiring.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from attempts.reviews.errors import NotAReviewer, ReviewClaimed, ReviewExpired, ReviewOver
from attempts.reviews.models import Delegation, Review
from attempts.reviews.selectors.reviews import LockedReview, actor_at, claimed_by_other, database_now, review_lock
from attempts.reviews.selectors.standing import delegate_find, refusal_of, role_holders, standing_of
from attempts.reviews.services.decide import record_review
from governance.ledger.services import person_commitment
from governance.people.models import User
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, WrongState

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


LONGEST_HOURS = 14 * 24  # a delegation that somebody forgot must end by itself


def review_delegate(
    *, actor: Actor, at: datetime, review_id: UUID, to_username: str, hours: int, tier: str = ""
) -> Delegation:
    """Delegates a tier from now on, for all its reviews. Without `tier`: the giver's first tier in this review."""
    return _delegate(
        actor=actor_at(actor=actor, review_id=review_id),
        at=at,
        review_id=review_id,
        to_username=to_username,
        hours=hours,
        tier=tier,
    )


@violations_recorded
def _delegate(*, actor: Actor, at: datetime, review_id: UUID, to_username: str, hours: int, tier: str) -> Delegation:
    with transaction.atomic():
        locked = review_lock(review_id=review_id)
        now, review = database_now(), locked.review
        giver, tier = _giver(actor, review, tier)
        if not locked.is_open or locked.overdue(now):
            raise WrongState("This review has ended.")
        receiver = _receiver(review.organization_id, giver, to_username)
        delegation = Delegation(
            organization_id=review.organization_id,
            tier=tier,
            from_user_id=giver,
            to_user=receiver,
            starts_at=now,
            ends_at=now + _length(hours),
        )
        delegation.save(force_insert=True)
        payload = {
            "delegation": str(delegation.id),
            "delegated_tier": tier,
            "to": person_commitment(user_id=receiver.id),
            "until": delegation.ends_at.isoformat(),
        }
        record_review(review, "review.delegated", actor=actor, at=at, payload=payload)
    return delegation


def _giver(actor: Actor, review: Review, tier: str) -> tuple[UUID, str]:
    """The person who delegates, and the tier."""
    # Only a person with the role itself: a delegated tier cannot be delegated again, or nobody could say who decides.
    if actor.kind is ActorKind.PERSON and actor.id is not None:
        tiers = [tier] if tier else [part["tier"] for part in review.parts]
        locked = role_holders(organization_id=review.organization_id, tiers=tiers, people=[actor.id])
        if locked:
            return actor.id, next(name for name in tiers if name in locked)
    raise NotAReviewer("Only a reviewer of the tier can delegate it.", subject_type="review", subject_id=review.id)


def _receiver(organization_id: UUID, giver: UUID, username: str) -> User:
    """The person who receives the delegation."""
    # A name of another organization and a name that does not exist get the same answer, so that names cannot be probed.
    receiver = delegate_find(organization_id=organization_id, username=username)
    if receiver is None:
        raise InvalidInput(errors=[FieldError("/to_username", "is nobody who may act in this organization")])
    if receiver.id == giver:
        raise InvalidInput(errors=[FieldError("/to_username", "must be somebody else")])
    return receiver


def _length(hours: int) -> timedelta:
    if not 1 <= hours <= LONGEST_HOURS:
        raise InvalidInput(errors=[FieldError("/hours", f"from 1 to {LONGEST_HOURS}")])
    return timedelta(hours=hours)
