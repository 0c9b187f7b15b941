"""What follows a move of an attempt: handlers that a higher app registers, and requests that wait for it.

Imports go in one direction, so attempts cannot call workflows; workflows registers its handlers in `apps.py`. A request
with `Prefer: wait` sleeps on Valkey and holds no database connection.
"""

# `attempt_moved` and `review_ended` call their handlers inside the transaction, while attempt and review are locked.
# The lock order is instance, attempt, review, so a handler must not wait for a workflow instance: two transactions
# could deadlock. It inserts a row (a signal), which the engine reads after the commit. An error in a handler rolls the
# change back, otherwise the step would never learn of it.

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import structlog
from django.db import connection, transaction
from redis.exceptions import RedisError

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review, ReviewVote
from governance.outside.valkey import valkey
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


AttemptStopped = Callable[..., object]
_attempt_stopped: list[AttemptStopped] = []


def on_attempt_stopped(handler: AttemptStopped) -> AttemptStopped:
    """Registers a handler for released attempts that end without a success, called with `attempt`, `actor`, `at` and
    `reason_code`, inside the transaction."""
    if handler not in _attempt_stopped:
        _attempt_stopped.append(handler)
    return handler


def attempt_stopped(attempt: Attempt, *, actor: Actor, at: datetime) -> None:
    for handler in _attempt_stopped:
        handler(attempt=attempt, actor=actor, at=at, reason_code=attempt.reason_code)


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


log = structlog.get_logger("holdpoint.waiting")
MOST_SECONDS = 30
# At most this many threads of a process wait; the others answer at once, which the header allows. Without a limit
# waiting requests could take all threads, and intake would have none.
MOST_WAITING = 4
_places = threading.BoundedSemaphore(MOST_WAITING)


def limit_waiting(places: int) -> None:
    """For a process with few threads. Called before its first request."""
    global _places
    _places = threading.BoundedSemaphore(places)


def channel(attempt_id: UUID) -> str:
    return f"holdpoint:attempt:{attempt_id}"


def move_announce(attempt_id: UUID) -> None:
    """Tells waiting requests that the attempt changed. Best effort: without the message they wait to their limit."""

    def publish() -> None:
        try:
            valkey().publish(channel(attempt_id), "moved")
        except RedisError as error:
            # The change is committed: Valkey being away must not turn it into an error for the caller.
            log.warning("announcement_unheard", exc_info=error)

    # Not before the commit: a request that wakes earlier would read the old state and answer with it.
    transaction.on_commit(publish)


def wait_seconds(prefer: str) -> int:
    """Reads a `Prefer` header; 0 if it asks for no waiting."""
    for part in prefer.split(","):
        name, _, value = part.strip().partition("=")
        if name == "wait" and value.isdigit():
            return min(int(value), MOST_SECONDS)
    return 0


class Sleeper:
    """Waits for one attempt. Use it around the reading of the state: it subscribes first, so no change is missed."""

    def __init__(self, attempt_id: UUID, seconds: int) -> None:
        self.attempt_id = attempt_id
        self.deadline = time.monotonic() + seconds
        self.subscription: Any = None
        self.places = _places
        self.placed = seconds > 0 and self.places.acquire(blocking=False)

    def __enter__(self) -> "Sleeper":
        if self.placed:
            try:
                self.subscription = valkey().pubsub(ignore_subscribe_messages=True)
                self.subscription.subscribe(channel(self.attempt_id))
            except RedisError as error:
                # Waiting is a favour: without Valkey the request is answered at once.
                log.warning("waiting_unavailable", exc_info=error)
                self.subscription = None
        return self

    def sleep(self) -> bool:
        """Waits until the attempt changed (True) or the time is over (False)."""
        if self.subscription is None:
            return False
        # A sleeping request must not occupy one of the database's connections.
        connection.close()
        try:
            # In short waits: the socket has a timeout of its own, which must not end the whole wait.
            while (left := self.deadline - time.monotonic()) > 0:
                if self.subscription.get_message(timeout=min(left, 1.5)):
                    return True
        except RedisError as error:
            log.warning("waiting_unavailable", exc_info=error)
        return False

    def __exit__(self, *_: object) -> None:
        if self.placed:
            self.places.release()
        if self.subscription is not None:
            self.subscription.close()
