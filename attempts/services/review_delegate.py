"""Delegation: for a time, one person decides in another's place. Their voice stays one voice."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from attempts.models import Delegation, Review
from attempts.review_errors import NotAReviewer
from attempts.selectors.review import actor_at, database_now, review_lock
from attempts.selectors.review_standing import delegate_find, role_holders
from attempts.services.review_end import record_review
from governance.ledger.append import person_commitment
from governance.models import User
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.errors import FieldError, InvalidInput, WrongState

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
        held = review_lock(review_id=review_id)
        now, review = database_now(), held.review
        giver, tier = _giver(actor, review, tier)
        if not held.is_open or held.overdue(now):
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
        held = role_holders(organization_id=review.organization_id, tiers=tiers, people=[actor.id])
        if held:
            return actor.id, next(name for name in tiers if name in held)
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
