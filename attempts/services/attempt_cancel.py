"""Withdrawing attempts before anything ran: one by its caller, one or many by an operator who says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.models import Attempt
from attempts.selectors.attempt import attempt_lock, attempts_chosen
from attempts.services.review_end import review_cancel
from attempts.services.transition import transition_apply
from attempts.states import AttemptState
from governance.services.note import note_create
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.codes import Scope
from reasoncodes.errors import NotFound, WrongState
from reasoncodes.selectors import reason_code_require

BY_CALLER = "cancelled_by_caller"
AT_ONCE = 100  # they go in the address, of which the web server takes 4 KiB
TOO_LATE = "It is too late to withdraw this attempt: it has ended, or an executor has leased it."


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """One of many. `refusal` says why it would not be, or was not, withdrawn."""

    attempt: Attempt
    refusal: str = ""


def attempt_cancel(*, actor: Actor, at: datetime, attempt_id: UUID, reason_code: str = "", note: str = "") -> Attempt:
    """By the service that asked, or by an operator, who gives a reason. After the first lease it is too late: something
    may have run."""
    with transaction.atomic():
        attempt = attempt_lock(attempt_id=attempt_id)
        if not actor.may_act_in(attempt.organization_id):
            raise NotFound
        if actor.kind is ActorKind.SERVICE and actor.id != attempt.caller_id:
            raise NotFound
        if not withdrawable(attempt):
            raise WrongState(TOO_LATE)
        payload = _said(attempt, reason_code, note) if reason_code else {}
        code = reason_code or BY_CALLER
        review_cancel(attempt=attempt, actor=actor, at=at, reason_code=code)
        transition_apply(attempt, "deny", actor=actor, at=at, payload=payload, reason_code=code)
    return attempt


def withdrawable(attempt: Attempt) -> bool:
    return attempt.state in {AttemptState.REVIEW_REQUIRED, AttemptState.APPROVED} and attempt.lease_token == 0


def _said(attempt: Attempt, reason_code: str, note: str) -> dict[str, str]:
    reason_code_require(organization_id=attempt.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    stored = note_create(organization_id=attempt.organization_id, text=note)
    return {"note": str(stored.id), "note_sha256": stored.sha256} if stored else {}


def attempts_preview(*, attempt_ids: Sequence[UUID]) -> list[Withdrawal]:
    """What would happen to each, as things are now."""
    rows = attempts_chosen(ids=attempt_ids[:AT_ONCE])
    return [Withdrawal(row, "" if withdrawable(row) else TOO_LATE) for row in rows]


def attempts_cancel(
    *, actor: Actor, at: datetime, attempt_ids: Sequence[UUID], reason_code: str, note: str = ""
) -> list[Withdrawal]:
    """One after the other, each in its own transaction and looked at again under its lock."""
    done = []
    for row in attempts_chosen(ids=attempt_ids[:AT_ONCE]):
        try:
            ended = attempt_cancel(actor=actor, at=at, attempt_id=row.id, reason_code=reason_code, note=note)
            done.append(Withdrawal(ended))
        except (WrongState, NotFound) as refusal:
            done.append(Withdrawal(row, refusal.detail))
    return done
