"""The table of built-in scheduled tasks. config registers it, because it names tasks of every app."""

from collections.abc import Iterable

from governance.schedule.rules import ScheduledTask

_tasks: dict[str, ScheduledTask] = {}


def register_schedule(tasks: Iterable[ScheduledTask]) -> None:
    _tasks.update({one.name: one for one in tasks})


def scheduled_tasks() -> dict[str, ScheduledTask]:
    return dict(_tasks)
