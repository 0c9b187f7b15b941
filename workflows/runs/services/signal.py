"""Writes a signal when an attempt or a review of a step is decided, in the transaction of that decision.

The engine follows it in a transaction of its own (`signal_follow`): here attempt and review are locked already, and
locking the run after them would break the lock order (run, attempt, review) and could deadlock."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import AttemptState
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.states import ReviewStatus
from governance.ledger.services import actor_reference
from governance.outside.wake_up import wake_up
from reasoncodes.base.actors import Actor
from workflows.runs.models import Nudge

PERFORMED = "done"
SIGNAL_TASK = "workflows.tasks.nudge_follow"
# How long the wake-up has to get through before the scheduled task follows the signal.
PATIENCE = timedelta(seconds=5)


def signal_attempt_moved(attempt: Attempt, *, old: str, new: str, actor: Actor, at: datetime) -> None:
    """Signal an attempt that was denied, or set apart because people refused another try."""
    # Only these: the worker's dispatch resumes the step of a released attempt, and all other ends are the engine's own.
    if new in {AttemptState.PREFLIGHT_DENIED, AttemptState.QUARANTINED} and attempt.origin_step is not None:
        said = {"verdict": "deny", "reason_code": attempt.reason_code, "attempt": str(attempt.id)}
        signal_put(attempt.organization_id, attempt.origin_step, "attempt", said, actor, at)


def signal_review_ended(
    review: Review, *, old: str, new: str, vote: ReviewVote | None, actor: Actor, at: datetime
) -> None:
    if review.origin_step is None or new == ReviewStatus.CANCELED:
        return
    said: dict[str, Any] = {"status": new, "review": str(review.id)}
    if vote is not None:
        said |= {"decision": vote.verdict, "reviewer_id": vote.voter_ref}
        if vote.result_ref:
            said |= {"result_ref": vote.result_ref, "result_sha256": vote.result_sha256}
        if vote.outcome:
            said |= {"outcome": vote.outcome, "form": vote.form or {}}
    signal_put(review.organization_id, review.origin_step, "review", said, actor, at)


def signal_call_ended(
    *,
    organization_id: UUID,
    step: UUID,
    event_type: str,
    payload: dict[str, Any] | None,
    unknown: bool,
    actor: Actor,
    at: datetime,
) -> None:
    """Signal what a module answered over HTTP. `payload` None: it cannot be read. `unknown`: nobody knows whether the
    module acted."""
    said = {"event_type": event_type, "payload": payload, "unknown": unknown}
    signal_put(organization_id, step, "call", said, actor, at)


def signal_performed(organization_id: UUID, step: UUID, payload: dict[str, Any], *, actor: Actor, at: datetime) -> None:
    """Signal that Holdpoint has done what a step asked of it; `payload` is that of the kind's completion."""
    signal_put(organization_id, step, PERFORMED, payload, actor, at)


def signal_put(
    organization_id: UUID, step: UUID, kind: str, payload: dict[str, Any], actor: Actor, at: datetime
) -> None:
    signal = Nudge(
        organization_id=organization_id,
        step=step,
        kind=kind,
        payload=payload,
        actor_kind=actor.kind.value,
        actor_ref=actor_reference(actor),
        due_at=at + PATIENCE,
        at=at,
    )
    signal.save(force_insert=True)
    wake_up(SIGNAL_TASK, signal.id)
