"""`Prefer: wait`: a request waits until its attempt changes state, without a database connection.

Changes are published in Valkey after their commit. The database is not polled.
"""

import threading
import time
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from redis.exceptions import RedisError

from governance.outside.valkey import valkey

log = structlog.get_logger("holdpoint.waiting")
MOST_SECONDS = 30
# At most this many threads of a process wait; the others answer at once, which the header allows. Without a limit
# waiting requests could take all threads, and intake would have none.
_places = threading.BoundedSemaphore(4)


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
        self.placed = seconds > 0 and _places.acquire(blocking=False)

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
            _places.release()
        if self.subscription is not None:
            self.subscription.close()
