"""Wake-ups: messages to a worker, after the commit, that there is work. The row is the truth: if a wake-up is lost, a
scheduled task finds the row later."""

from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction
from redis.exceptions import RedisError

from governance.outside.valkey import valkey, valkey_command

WAKE_UP_FLAG = "holdpoint:ringing:"
# How long one wake-up silences the next ones. A message that was lost delays later work by no more than this.
WAKE_UP_FLAG_MS = 500
log = structlog.get_logger("holdpoint.doorbell")


def wake_up(task: str, row_id: UUID) -> None:
    """Send a task by name, with the id of its row. If the broker is away, this is logged, and a scheduled task does the
    work later."""

    def send() -> None:
        try:
            # `retry=False`: otherwise a request that has committed would wait for the broker. `expires`: a scheduled
            # task has found the row long before.
            current_app.send_task(task, args=[str(row_id)], retry=False, expires=60)
        # Everything: the row is committed, and an error here would turn that into a failed request.
        except Exception as error:
            log.warning("doorbell_unheard", task=task, exc_info=error)

    # Not before the commit: the worker would look for a row that it cannot see yet.
    transaction.on_commit(send)


def wake_up_once(task: str) -> None:
    """For a task that finds its rows itself. At most one message per transaction, and none while an earlier one is on
    its way. The task calls `wake_up_received` before it reads."""
    # A message per event cost more than the event, and almost always the worker found nothing left to do.
    waiting = [function for _, function, *_ in transaction.get_connection().run_on_commit]
    if not any(getattr(function, "task", None) == task for function in waiting):
        transaction.on_commit(_WakeUp(task))


def wake_up_received(task: str) -> None:
    """The task has started and is about to read. Deletes the flag, so that later commits send a wake-up again."""
    # Before the task reads: a row that commits after the read would otherwise find the flag and send nothing.
    try:
        valkey().delete(WAKE_UP_FLAG + task)
    except RedisError as error:
        # No harm: the flag expires by itself.
        log.warning("doorbell_flag_kept", task=task, error=type(error).__name__)


class _WakeUp:
    def __init__(self, task: str) -> None:
        self.task = task

    def __call__(self) -> None:
        try:
            # NX and an expiry in one command: a process that dies after it cannot leave the flag for ever.
            if valkey_command("SET", WAKE_UP_FLAG + self.task, "1", "NX", "PX", str(WAKE_UP_FLAG_MS)):
                current_app.send_task(self.task, retry=False, expires=60)
        # Everything, as in `wake_up`: the transaction is already committed.
        except Exception as error:
            log.warning("doorbell_unheard", task=self.task, exc_info=error)
