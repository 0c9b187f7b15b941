"""Celery looks for the tasks of an app here. Each is defined in its room, under a name that never changes."""

from workflows.events import tasks as events
from workflows.runs import tasks as runs
from workflows.webhooks import tasks as webhooks

__all__ = ["events", "runs", "webhooks"]
