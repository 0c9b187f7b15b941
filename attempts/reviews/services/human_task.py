"""Tasks of workflow steps: opened by the engine; people answer with an outcome and the filled form. Declining one is in
`human_review`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.reviews.models import Review
from attempts.reviews.rules import Exclusion
from attempts.reviews.selectors.reviews import LockedReview, review_get
from attempts.reviews.selectors.standing import ReviewStanding
from attempts.reviews.services.decide import (
    REFUSING,
    CastVote,
    Rules,
    Word,
    claim_drop,
    record_review,
    review_decide,
    review_end,
)
from attempts.reviews.states import END_OF_OUTCOME, ReviewKind, ReviewStatus, VoteVerdict
from governance.boundary.rules.forms import EMPTY_FORM, form_problems
from governance.boundary.services import content_check
from governance.contracts.rules.documents.json_safety import unsafe_values
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, InvalidInput, WrongState


@dataclass(frozen=True, slots=True)
class TaskAsked:
    """What a step asks of people. `shown`: title, facts, form, outcomes and approvals, as the step's kind made them."""

    organization_id: UUID
    origin_step: UUID
    tier: str
    step_kind: str
    shown: Mapping[str, Any]
    digest: str
    context_ref: str
    expires_at: datetime | None = None
    due_at: datetime | None = None
    asked_by: UUID | None = None
    """The service account that asked for the run: the people behind it may not decide."""
    requester_refs: tuple[str, ...] = ()
    assigned: str = ""
    """The commitment of the one person whom the workflow assigned it to."""


def human_task_open(*, asked: TaskAsked, actor: Actor, at: datetime) -> Review:
    """In the caller's transaction. A step has at most one open review. A vote is bound to the digest."""
    shown, until = dict(asked.shown), asked.expires_at
    # People are reminded when it is due; without that, when half of its time is over.
    remind_at = asked.due_at or (at + (until - at) / 2 if until is not None else None)
    review = Review(
        organization_id=asked.organization_id,
        kind=ReviewKind.HUMAN_TASK.value,
        origin_step=asked.origin_step,
        subject_ref=asked.context_ref,
        label=shown["title"],
        tier=asked.tier,
        approvals_required=shown.pop("approvals"),
        task=shown
        | {
            "step_kind": asked.step_kind,
            "due_at": asked.due_at.isoformat() if asked.due_at is not None else None,
            "asked_by": str(asked.asked_by) if asked.asked_by is not None else None,
            "assigned": asked.assigned,
        },
        action_digest=asked.digest,
        excluded=[{"ref": ref, "reason": Exclusion.OWN_REQUEST.value} for ref in asked.requester_refs],
        requested_at=at,
        expires_at=until,
        remind_at=remind_at,
    )
    review.save(force_insert=True)
    payload = {"action_digest": asked.digest, "expires_at": until.isoformat() if until is not None else None}
    record_review(review, "review.opened", actor=actor, at=at, payload=payload)
    return review


def human_task_decide(
    *,
    actor: Actor,
    at: datetime,
    review_id: UUID,
    outcome: str,
    action_digest: str,
    form: Mapping[str, Any] | None = None,
    reason_code: str = "",
    note: str = "",
) -> Review:
    """An outcome ends the task as soon as as many different people have chosen it as the task asks for; `reject` ends
    it with the first one. The form of the person whose vote ends it is the step's output."""
    filled = dict(form or {})
    if any(unsafe_values(filled)):  # before it is stored and hashed
        raise InvalidInput(errors=[FieldError("/form", "must be plain JSON: finite numbers, valid text", rule="json")])
    content_check(content=filled, pointer="/form")
    word = Word(VoteVerdict.ANSWER, action_digest, reason_code, note, outcome=outcome, form=filled)
    return review_decide(actor=actor, at=at, review_id=review_id, word=word, rules=HUMAN_TASK)


def is_human_task(*, review_id: UUID) -> bool:
    """Which door a verdict takes."""
    return review_get(review_id=review_id).kind == ReviewKind.HUMAN_TASK


def task_form(*, review_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = (review_get(review_id=review_id).task or {}).get("form") or EMPTY_FORM
    return found


def _unfit(locked: LockedReview, standing: ReviewStanding, word: Word) -> DomainError | None:
    """Refuses an outcome that the task does not have, and a form that is not filled in as it asks."""
    task = locked.review.task or {}
    if word.outcome not in task.get("outcomes", ()):
        return WrongState(f"This task is decided by: {', '.join(task.get('outcomes', ()))}.")
    problems = form_problems(task["form"], word.form)
    if not problems:
        return None
    return InvalidInput(
        "The form is not filled in as the task asks; nothing was decided.",
        errors=[FieldError(f"/form/{one.field}".rstrip("/"), one.message, rule=one.rule) for one in problems],
    )


def _settle(cast: CastVote) -> None:
    review, vote = cast.locked.review, cast.vote
    if vote.outcome != REFUSING and not cast.quorum.met:
        if review.claimed_by_id == cast.actor.id:
            claim_drop(review)
        return
    review_end(
        review,
        END_OF_OUTCOME.get(vote.outcome, ReviewStatus.DECIDED),
        actor=cast.actor,
        at=cast.at,
        reason_code=vote.reason_code,
        payload={"vote": str(vote.id), "action_digest": review.action_digest, "outcome": vote.outcome},
        vote=vote,
    )


HUMAN_TASK = Rules(_unfit, _settle)
