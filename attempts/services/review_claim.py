"""Claiming a review: a lease of fifteen minutes that keeps two people from reading the same card.

While a single approval is needed, others wait for the claim to end (409); where two are needed, a claim is only a sign
to the others, since both of them have to read the card. It never keeps a review from expiring.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from attempts.models import Review
from attempts.review_errors import ReviewClaimed, ReviewExpired, ReviewOver
from attempts.selectors.review import Held, actor_at, claimed_by_other, database_now, review_lock
from attempts.selectors.review_standing import refusal_of, standing_of
from attempts.services.review_end import record_review
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.errors import WrongState

CLAIM = timedelta(minutes=15)


def review_claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    """By somebody who may decide: who may not, may not claim either. Claiming again renews it."""
    return _claim(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id)


@violations_recorded
def _claim(*, actor: Actor, at: datetime, review_id: UUID) -> Review:
    with transaction.atomic():
        held = review_lock(review_id=review_id)
        now = database_now()
        review, person = held.review, actor.id if actor.kind is ActorKind.PERSON else None
        standing = standing_of(review=review, attempt=held.attempt, person=person, now=now)
        refusal = refusal_of(review=review, attempt=held.attempt, standing=standing, now=now)
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
        held = review_lock(review_id=review_id)
        now, review = database_now(), held.review
        _require_open(held, now)
        if review.claimed_by_id is None or review.claimed_by_id != actor.id:
            if claimed_by_other(review, person=actor.id, now=now):
                raise ReviewClaimed
            raise WrongState("You have not claimed this review.")
        review.claimed_by, review.claimed_until = None, None
        review.save(update_fields=["claimed_by", "claimed_until"])
        record_review(review, "review.released", actor=actor, at=at)
    return review


def _require_open(held: Held, now: datetime) -> None:
    if not held.is_open or held.overdue(now):
        raise WrongState("This review has ended.")
