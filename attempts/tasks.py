"""Celery looks for the tasks of an app here. Each is defined in the folder of its capability. Their names never change,
because messages and the schedule refer to them."""

from attempts.execution import tasks as execution
from attempts.notify import tasks as notify
from attempts.quarantine import tasks as quarantine
from attempts.reviews import tasks as reviews

__all__ = ["execution", "notify", "quarantine", "reviews"]
