"""How each built-in scheduled task stands: as the table says, changed, disabled, gone, or overdue. Reads the rows of
django-celery-beat, which anybody with SQL could have changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from redis.exceptions import RedisError

from governance.schedule.adapters import runs_marked
from governance.schedule.hooks import scheduled_tasks
from governance.schedule.models import ScheduleChange
from governance.schedule.rules import NO_MARKS, RunMarks, ScheduledTask, overdue_seconds

PREFIX = "holdpoint: "
UNIT = IntervalSchedule.SECONDS
# Written by django-celery-beat itself. It does nothing, because no results are stored.
BEATS_OWN = "celery.backend_cleanup"
MOST_FOREIGN = 20
# Everything in a row that decides whether and when beat sends the task, and what it sends.
PLAIN: dict[str, Any] = {
    "enabled": True,
    "one_off": False,
    "args": "[]",
    "kwargs": "{}",
    "headers": "{}",
    "queue": None,
    "exchange": None,
    "routing_key": None,
    "priority": None,
    "start_time": None,
    "expires": None,
    "crontab_id": None,
    "solar_id": None,
    "clocked_id": None,
}


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """One scheduled task. `altered`: what is wrong with its row, in words; empty if it is as it should be."""

    built_in: ScheduledTask
    seconds: int
    altered: str
    marks: RunMarks
    overdue: float | None

    @property
    def last_run(self) -> datetime | None:
        return self.marks.began

    @property
    def next_run(self) -> datetime | None:
        return self.marks.began + timedelta(seconds=self.seconds) if self.marks.began and not self.altered else None

    @property
    def trouble(self) -> str:
        """For people, with the task's name; empty if all is well."""
        late = f"is overdue by {self.overdue:.0f} s" if self.overdue is not None else ""
        said = " and ".join(part for part in (self.altered, late) if part)
        return f"{self.built_in.name} {said}" if said else ""


def intervals_in_force() -> dict[str, int]:
    """Seconds of each built-in task: the newest confirmed change, else the table's."""
    built_in = {name: one.seconds for name, one in scheduled_tasks().items()}
    changed = ScheduleChange.objects.order_by("name", "-id").distinct("name").values_list("name", "seconds")
    return built_in | {name: seconds for name, seconds in changed if name in built_in}


def row_wanted(one: ScheduledTask, *, seconds: int) -> dict[str, Any]:
    """The columns of the task's row, without its interval."""
    # An expired message is worthless: the next run finds the same rows. Without an expiry they would pile up in the
    # queue while no worker runs.
    return PLAIN | {"task": one.task, "expire_seconds": max(seconds * 2, 10)}


def schedule_standing(*, at: datetime, grace: float) -> list[TaskStanding]:
    """Every built-in task, in the order of the table. `grace`: seconds beyond two intervals before one is overdue."""
    rows, intervals = _rows(), intervals_in_force()
    try:
        since, marks = runs_marked()
    except RedisError:
        # Valkey is away, which `broker` and `beat` of /health/ready say. The rows can still be compared.
        since, marks = None, {}
    return [
        TaskStanding(
            built_in=one,
            seconds=intervals[name],
            altered=_altered(one, rows.get(PREFIX + name), seconds=intervals[name]),
            marks=(own := marks.get(name, NO_MARKS)),
            overdue=overdue_seconds(own, seconds=intervals[name], since=since, grace=grace, at=at, swept=one.swept),
        )
        for name, one in scheduled_tasks().items()
    ]


def foreign_tasks() -> list[str]:
    """Names of rows that are not built in, at most twenty: somebody added them past the console."""
    ours = [PREFIX + name for name in scheduled_tasks()]
    rows = PeriodicTask.objects.exclude(name__in=[*ours, BEATS_OWN]).order_by("id")
    return list(rows.values_list("name", flat=True)[:MOST_FOREIGN])


def _rows() -> dict[str, dict[str, Any]]:
    columns = [*PLAIN, "task", "expire_seconds"]
    found = PeriodicTask.objects.filter(name__startswith=PREFIX).annotate(
        every=F("interval__every"), period=F("interval__period")
    )
    return {row["name"]: row for row in found.values("name", "every", "period", *columns)}


def _altered(one: ScheduledTask, row: Mapping[str, Any] | None, *, seconds: int) -> str:
    if row is None:
        return "is missing"
    if not row["enabled"]:
        return "is disabled"
    if (row["every"], row["period"]) != (seconds, UNIT):
        return f"has another interval than {seconds} s"
    wanted = row_wanted(one, seconds=seconds)
    return "was changed" if any(row[name] != value for name, value in wanted.items()) else ""
