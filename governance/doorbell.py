"""Tells a worker, after the commit, that there is something to do. The row is the truth: a lost ring costs time."""

from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction

log = structlog.get_logger("holdpoint.doorbell")


def ring(task: str, row_id: UUID) -> None:
    """By name and id, after the commit; a broker that is away is logged and made up for by the tick."""

    def send() -> None:
        try:
            current_app.send_task(task, args=[str(row_id)], retry=False, expires=60)
        except Exception as error:
            log.warning("doorbell_unheard", task=task, exc_info=error)

    transaction.on_commit(send)
