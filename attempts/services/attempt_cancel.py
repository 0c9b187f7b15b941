"""Withdrawing an attempt before anything ran."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.models import Attempt, Review
from attempts.selectors.attempt import attempt_lock
from attempts.services.transition import transition_apply
from attempts.states import AttemptState, ReviewStatus
from governance.ledger.append import ledger_append
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.errors import NotFound, WrongState


def attempt_cancel(*, actor: Actor, at: datetime, attempt_id: UUID) -> Attempt:
    """By the service that asked, or an operator. After the first lease it is too late: something may have run."""
    with transaction.atomic():
        attempt = attempt_lock(attempt_id=attempt_id)
        if not actor.may_act_in(attempt.organization_id):
            raise NotFound
        if actor.kind is ActorKind.SERVICE and actor.id != attempt.caller_id:
            raise NotFound
        if attempt.state not in {AttemptState.REVIEW_REQUIRED, AttemptState.APPROVED} or attempt.lease_token > 0:
            raise WrongState("It is too late to withdraw this attempt: it has ended, or an executor has leased it.")
        _end_review(attempt, actor=actor, at=at)
        transition_apply(attempt, "deny", actor=actor, at=at, reason_code="cancelled_by_caller")
    return attempt


def _end_review(attempt: Attempt, *, actor: Actor, at: datetime) -> None:
    review = Review.objects.select_for_update(no_key=True).filter(attempt=attempt).first()
    if review is None or review.status != ReviewStatus.REQUESTED:
        return
    review.status = ReviewStatus.CANCELED
    review.decided_at = at
    review.save(update_fields=["status", "decided_at"])
    ledger_append(
        action="review.canceled",
        organization_id=review.organization_id,
        subject_type="review",
        subject_id=review.id,
        actor=actor,
        at=at,
        payload={},
        reason_code="cancelled_by_caller",
    )
