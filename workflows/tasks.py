"""Celery looks for the tasks of an app here. They are defined in the capability's folder, under names that never
change."""

from workflows.events import tasks as events
from workflows.modules import tasks as modules
from workflows.runs import tasks as runs
from workflows.webhooks import tasks as webhooks

__all__ = ["events", "modules", "runs", "webhooks"]
