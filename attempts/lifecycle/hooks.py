"""Handlers that a higher app registers in its `apps.py`, for changes of attempts and reviews of workflow steps.

They exist because imports go in one direction: attempts cannot call workflows.
"""

# `attempt_moved` and `review_ended` call their handlers inside the transaction, while attempt and review are locked.
# The lock order is instance, attempt, review, so a handler must not wait for a workflow instance: two transactions
# could deadlock. It inserts a row (a signal), which the engine reads after the commit. An error in a handler rolls the
# change back, otherwise the step would never learn of it.

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
    """Registers a handler for state changes after intake of attempts that a workflow step opened. It is not called if
    the service was called with `tell=False`: the caller is then the engine itself."""
    # Registered once, also if `ready()` runs again.
    if handler not in _attempt_moved:
        _attempt_moved.append(handler)
    return handler


def on_review_ended(handler: ReviewEnded) -> ReviewEnded:
    """Registers a handler for human reviews that people or the clock ended; `vote` is the deciding vote. Reviews of
    held attempts have no `origin_step` and call no handler. Nor does a canceled review: its canceler is the engine."""
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
    """Registers a handler that a worker calls, outside any transaction, if an attempt of a workflow step is due."""
    if handler not in _step_ready:
        _step_ready.append(handler)
    return handler


def step_ready(attempt_id: UUID, at: datetime) -> None:
    for handler in _step_ready:
        handler(attempt_id, at)
