"""Wakes the dispatch of the queue when a slot becomes free while somebody waits for one."""

import structlog
from django.db import transaction
from redis.exceptions import RedisError

from governance.outside.valkey import valkey_command
from governance.outside.wake_up import wake_up_once

QUEUE = "attempts.tasks.execution.queue_hand_out"
WANTED = "holdpoint:slots:wanted"
# The mark is only a hint: without it the scheduled task gives the slot a little later.
WANTED_MS = "60000"
log = structlog.get_logger("holdpoint.queue")


def slots_wanted() -> None:
    """Somebody waits for a slot; says so after the commit."""
    transaction.on_commit(lambda: _ask("SET", WANTED, "1", "PX", WANTED_MS))


def slots_freed() -> None:
    """A slot is free after the commit. If somebody waits, the queue is looked through at once."""
    transaction.on_commit(_freed)


def _freed() -> None:
    if _ask("GETDEL", WANTED):
        wake_up_once(QUEUE)


def _ask(*words: str) -> object:
    try:
        return valkey_command(*words)
    except RedisError as error:
        # The slot is free all the same: the change is committed, and Valkey being away must not turn it into an error.
        log.warning("freed_slot_unheard", exc_info=error)
        return None
