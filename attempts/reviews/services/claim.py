"""Claiming a review: a lease of fifteen minutes that keeps two people from reading the same card.

While a single approval is needed, others wait for the claim to end (409); where two are needed, a claim is only a sign
to the others, since both of them have to read the card. It never keeps a review from expiring.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from attempts.reviews.errors import NotAReviewer, ReviewClaimed, ReviewExpired, ReviewOver
from attempts.reviews.models import Delegation, Review
from attempts.reviews.selectors.reviews import LockedReview, actor_at, claimed_by_other, database_now, review_lock
from attempts.reviews.selectors.standing import delegate_find, refusal_of, role_holders, standing_of
from attempts.reviews.services.end import record_review
from governance.ledger.services import person_commitment
from governance.people.models import User
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import FieldError, InvalidInput, WrongState

CLAIM = timedelta(minutes=15)


def review_claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    """By somebody who may decide: who may not, may not claim either. Claiming again renews it."""
    return _claim(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id)


@violations_recorded
def _claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    with transaction.atomic():
        locked = review_lock(review_id=review_id)
        now = database_now()
        review, person = locked.review, actor.id if actor.kind is ActorKind.PERSON else None
        standing = standing_of(review=review, attempt=locked.attempt, person=person, now=now)
        refusal = refusal_of(review=review, attempt=locked.attempt, standing=standing, now=now)
        if isinstance(refusal, ReviewOver | ReviewExpired):
            raise WrongState("This review has ended.")  # to come too late for a claim breaks no rule
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
    """Gives one's own claim back. Nobody gives back somebody else's."""
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


LONGEST_HOURS = 14 * 24


def review_delegate(
    *, actor: Actor, at: datetime, review_id: UUID, to_username: str, hours: int, tier: str = ""
) -> Delegation:
    """From the review's card, for all reviews of the tier (one of the review's own unless it is named) from now on."""
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
    """Only who has the role: what was delegated to somebody, they cannot hand on. Unnamed, their first tier here."""
    if actor.kind is ActorKind.PERSON and actor.id is not None:
        tiers = [tier] if tier else [part["tier"] for part in review.parts]
        locked = role_holders(organization_id=review.organization_id, tiers=tiers, people=[actor.id])
        if locked:
            return actor.id, next(name for name in tiers if name in locked)
    raise NotAReviewer("Only a reviewer of the tier can delegate it.", subject_type="review", subject_id=review.id)


def _receiver(organization_id: UUID, giver: UUID, username: str) -> User:
    """A stranger and nobody get the same answer."""
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
