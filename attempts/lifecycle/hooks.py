"""Upward calls: what happened here, told to whoever registered for it in their `apps.py`, in the same transaction.

A handler runs while attempt and review are locked. Whatever stands before them in the lock order (a workflow instance)
it must not wait for: it inserts what happened and goes on after the commit. An error in a handler undoes the move.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol
from uuid import UUID

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review, ReviewVote
from reasoncodes.base.actors import Actor


class AttemptMoved(Protocol):
    def __call__(self, attempt: Attempt, *, old: str, new: str, actor: Actor, at: datetime) -> None: ...


class ReviewEnded(Protocol):
    def __call__(
        self, review: Review, *, old: str, new: str, vote: ReviewVote | None, actor: Actor, at: datetime
    ) -> None: ...


_attempt_moved: list[AttemptMoved] = []
_review_ended: list[ReviewEnded] = []


def on_attempt_moved(handler: AttemptMoved) -> AttemptMoved:
    """Called for every later move of an attempt that a workflow step opened, except where the mover said `tell=False`
    because it is the engine itself. Its intake answers the step."""
    if handler not in _attempt_moved:
        _attempt_moved.append(handler)
    return handler


def on_review_ended(handler: ReviewEnded) -> ReviewEnded:
    """Called when people or the clock end a human review; `vote` is the deciding one. Not for `human_review_end`: who
    cancels it knows."""
    if handler not in _review_ended:
        _review_ended.append(handler)
    return handler


def attempt_moved(attempt: Attempt, *, old: str, actor: Actor, at: datetime) -> None:
    if attempt.origin_step is not None:
        for handler in _attempt_moved:
            handler(attempt, old=old, new=attempt.state, actor=actor, at=at)


def review_ended(review: Review, *, old: str, vote: ReviewVote | None, actor: Actor, at: datetime) -> None:
    if review.origin_step is not None:
        for handler in _review_ended:
            handler(review, old=old, new=review.status, vote=vote, actor=actor, at=at)


StepReady = Callable[[UUID, datetime], None]
_step_ready: list[StepReady] = []


def on_step_ready(handler: StepReady) -> StepReady:
    """Called by a worker, outside any transaction, for an attempt of a workflow step that may be sent now."""
    if handler not in _step_ready:
        _step_ready.append(handler)
    return handler


def step_ready(attempt_id: UUID, at: datetime) -> None:
    for handler in _step_ready:
        handler(attempt_id, at)
