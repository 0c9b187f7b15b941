"""Tells a worker, after the commit, that there is something to do. The row is the truth: a lost wake-up costs time."""

from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction
from redis.exceptions import RedisError

from governance.outside.valkey import valkey, valkey_command

WAKE_UP_FLAG = "holdpoint:ringing:"
WAKE_UP_FLAG_MS = 500
log = structlog.get_logger("holdpoint.doorbell")


def wake_up(task: str, row_id: UUID) -> None:
    """By name and id, after the commit; a broker that is away is logged and made up for by the tick."""

    def send() -> None:
        try:
            current_app.send_task(task, args=[str(row_id)], retry=False, expires=60)
        except Exception as error:
            log.warning("doorbell_unheard", task=task, exc_info=error)

    transaction.on_commit(send)


def wake_up_once(task: str) -> None:
    """Without an id, for work that finds its rows itself: once per transaction, however often it is asked for, and not
    while an earlier wake-up is still on its way. The task calls `wake_up_received` before it looks for rows."""
    waiting = [function for _, function, *_ in transaction.get_connection().run_on_commit]
    if not any(getattr(function, "task", None) == task for function in waiting):
        transaction.on_commit(_WakeUp(task))


def wake_up_received(task: str) -> None:
    """Whoever commits from now on must send another wake-up; what was committed before is seen by the rows' reader."""
    try:
        valkey().delete(WAKE_UP_FLAG + task)
    except RedisError as error:
        log.warning("doorbell_flag_kept", task=task, error=type(error).__name__)  # it goes by itself


class _WakeUp:
    def __init__(self, task: str) -> None:
        self.task = task

    def __call__(self) -> None:
        try:
            # Should the message be lost, the next one goes out when this has expired; and the tick needs none.
            if valkey_command("SET", WAKE_UP_FLAG + self.task, "1", "NX", "PX", str(WAKE_UP_FLAG_MS)):
                current_app.send_task(self.task, retry=False, expires=60)
        except Exception as error:
            log.warning("doorbell_unheard", task=self.task, exc_info=error)
