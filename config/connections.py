"""Database connections of workers: each thread keeps its own between tasks, and replaces it when it is broken or the
server was away."""

from typing import Any

from celery.signals import task_failure, task_postrun, task_prerun
from django.db import InterfaceError, OperationalError, close_old_connections

from config.middleware.database import drop_stale_connection, note_outage


@task_prerun.connect
def connection_fit(task: Any = None, **_: Any) -> None:
    if not task.request.is_eager:  # called in a process that is no worker: its connection is not ours to close
        drop_stale_connection()
        close_old_connections()


@task_postrun.connect
def connection_checked(task: Any = None, **_: Any) -> None:
    if not task.request.is_eager:
        close_old_connections()


@task_failure.connect
def connection_suspected(exception: BaseException | None = None, **_: Any) -> None:
    """One thread has met the outage; the others need not."""
    if isinstance(exception, OperationalError | InterfaceError):
        note_outage()
