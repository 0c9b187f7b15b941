"""Changes the interval of a built-in scheduled task, and writes the table of scheduled tasks to django-celery-beat's
tables."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from governance.ledger.services import actor_reference, ledger_append
from governance.schedule.hooks import scheduled_tasks
from governance.schedule.models import ScheduleChange
from governance.schedule.rules import ScheduledTask
from governance.schedule.selectors import BEATS_OWN, PREFIX, UNIT, intervals_in_force, row_wanted
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, ScopeMissing, WrongState


def schedule_check(
    *, name: str, seconds: Any, name_pointer: str = "/name", seconds_pointer: str = "/seconds"
) -> ScheduledTask:
    """The built-in task, if the interval is within its bounds. Also for a proposal, before anybody confirms it."""
    one = scheduled_tasks().get(name)
    if one is None:
        raise InvalidInput(errors=[FieldError(name_pointer, "is not a built-in scheduled task")])
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not one.shortest <= seconds <= one.longest:
        words = f"is a whole number of seconds from {one.shortest} to {one.longest}"
        raise InvalidInput(errors=[FieldError(seconds_pointer, words, rule="bounds")])
    return one


def schedule_change(*, actor: Actor, at: datetime, name: str, seconds: int, installation: bool) -> ScheduleChange:
    """Sets how often a built-in task runs. `installation`: the entry point has checked that the actor administers the
    installation. Nothing else about a task can be changed, and none can be disabled or added."""
    if not installation:
        raise ScopeMissing("Only an administrator of the installation changes the schedule.")
    one = schedule_check(name=name, seconds=seconds)
    with transaction.atomic():
        # The row lock orders two changes of one task: otherwise the older one could be written to beat's row last.
        list(PeriodicTask.objects.select_for_update(of=("self",)).filter(name=PREFIX + name))
        before = intervals_in_force()[name]
        if before == seconds:
            raise WrongState("The task runs at this interval already.")
        made = ScheduleChange(name=name, seconds=seconds, actor_ref=actor_reference(actor), at=at)
        made.save()
        _row_write(one, seconds=seconds)
        ledger_append(
            action="schedule.changed",
            organization_id=None,
            subject_type="schedule",
            subject_id=made.id,
            actor=actor,
            at=at,
            payload={"name": name, "seconds": seconds, "before": before, "built_in": one.seconds},
        )
    return made


def schedule_synchronise() -> None:
    """Creates and corrects the rows of our own scheduled tasks, and removes all others. Safe to repeat."""
    for name, seconds in intervals_in_force().items():
        _row_write(scheduled_tasks()[name], seconds=seconds)
    known = [*(PREFIX + name for name in scheduled_tasks()), BEATS_OWN]
    PeriodicTask.objects.exclude(name__in=known).delete()


def _row_write(one: ScheduledTask, *, seconds: int) -> None:
    unit = {"every": seconds, "period": UNIT}
    interval = IntervalSchedule.objects.filter(**unit).first() or IntervalSchedule.objects.create(**unit)
    wanted = row_wanted(one, seconds=seconds) | {"interval": interval}
    # A correct row is not written: every save makes beat read the whole schedule again.
    if not PeriodicTask.objects.filter(name=PREFIX + one.name, **wanted).exists():
        PeriodicTask.objects.update_or_create(name=PREFIX + one.name, defaults=wanted)
