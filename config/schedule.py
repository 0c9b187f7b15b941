"""Writes the table of scheduled tasks in config.celery to django-celery-beat's tables."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config.celery import SCHEDULE

PREFIX = "holdpoint: "


def schedule_synchronise() -> None:
    """Creates, corrects and removes our own periodic tasks; those that an operator added stay. Safe to repeat."""
    for name, (task, seconds) in SCHEDULE.items():
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=round(seconds * 1_000_000), period=IntervalSchedule.MICROSECONDS
        )
        # An expired message is worthless: the next run finds the same rows. Without an expiry they would pile up in the
        # queue while no worker runs.
        wanted = {"task": task, "interval": interval, "expire_seconds": max(int(seconds * 2), 10)}
        # A correct row is not written: every save makes beat read the whole schedule again.
        if not PeriodicTask.objects.filter(name=PREFIX + name, **wanted).exists():
            PeriodicTask.objects.update_or_create(name=PREFIX + name, defaults=wanted)
    ours = PeriodicTask.objects.filter(name__startswith=PREFIX)
    ours.exclude(name__in=[PREFIX + name for name in SCHEDULE]).delete()
