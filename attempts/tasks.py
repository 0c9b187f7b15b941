"""Celery looks for the tasks of an app here. Each is defined in its room, under a name that never changes."""

from attempts.execution import tasks as execution
from attempts.notify import tasks as notify
from attempts.quarantine import tasks as quarantine
from attempts.reviews import tasks as reviews

__all__ = ["execution", "notify", "quarantine", "reviews"]
