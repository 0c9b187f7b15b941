"""Tells a worker, after the commit, that there is something to do. The row is the truth: a lost ring costs time."""

import structlog
from celery import current_app
from django.db import transaction

from governance.doorbell import ring

DISPATCH = "attempts.tasks.execution.attempt_dispatch"
log = structlog.get_logger("holdpoint.doorbell")
__all__ = ["DISPATCH", "ring", "ring_once"]


def ring_once(task: str) -> None:
    """Without an id, for work that finds its rows itself: once per transaction, however often it is asked for."""
    waiting = [function for _, function, *_ in transaction.get_connection().run_on_commit]
    if not any(getattr(function, "task", None) == task for function in waiting):
        transaction.on_commit(_Bell(task))


class _Bell:
    def __init__(self, task: str) -> None:
        self.task = task

    def __call__(self) -> None:
        try:
            current_app.send_task(self.task, retry=False, expires=60)
        except Exception as error:
            log.warning("doorbell_unheard", task=self.task, exc_info=error)
