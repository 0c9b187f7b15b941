"""`Prefer: wait`: a request sleeps until its attempt moves, without holding a database connection.

At most a few per process may sleep, so that waiting never starves intake; the others are answered at once, which the
header allows.
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
_places = threading.BoundedSemaphore(4)


def channel(attempt_id: UUID) -> str:
    return f"holdpoint:attempt:{attempt_id}"


def move_announce(attempt_id: UUID) -> None:
    """After the commit of a move; best effort: a sleeper that hears nothing wakes at its limit."""

    def publish() -> None:
        try:
            valkey().publish(channel(attempt_id), "moved")
        except RedisError as error:
            log.warning("announcement_unheard", exc_info=error)

    transaction.on_commit(publish)


def wait_seconds(prefer: str) -> int:
    """From a `Prefer` header; 0 when it asks for no waiting."""
    for part in prefer.split(","):
        name, _, value = part.strip().partition("=")
        if name == "wait" and value.isdigit():
            return min(int(value), MOST_SECONDS)
    return 0


class Sleeper:
    """Subscribes before the state is read, so that no move falls between reading and sleeping."""

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
                log.warning("waiting_unavailable", exc_info=error)
                self.subscription = None
        return self

    def sleep(self) -> bool:
        """Until the attempt moved (True) or the time is over (False). Gives the database connection back first."""
        if self.subscription is None:
            return False
        connection.close()
        try:
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
