"""Withdrawing an attempt before anything ran."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.models import Attempt
from attempts.selectors.attempt import attempt_lock
from attempts.services.review_end import review_cancel
from attempts.services.transition import transition_apply
from attempts.states import AttemptState
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
        review_cancel(attempt=attempt, actor=actor, at=at, reason_code="cancelled_by_caller")
        transition_apply(attempt, "deny", actor=actor, at=at, reason_code="cancelled_by_caller")
    return attempt
