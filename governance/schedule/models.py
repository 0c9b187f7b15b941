"""Intervals of scheduled tasks that people have changed. The newest row of a task is in force."""

from django.db import models
from django.db.models import Q

from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7


class ScheduleChange(AppendOnlyModel):
    """One confirmed change. It belongs to no organization: the clock is the installation's."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=64, help_text="Of the scheduled task, as in `SCHEDULE`.")
    seconds = models.PositiveIntegerField()
    actor_ref = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(condition=Q(seconds__gte=1), name="schedule_change_at_least_a_second")]
        indexes = [models.Index(fields=["name", "-id"], name="schedule_change_newest")]

    def __str__(self) -> str:
        return f"{self.name}: {self.seconds} s"
