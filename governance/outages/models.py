"""When Holdpoint could not act, and the heartbeat by which that is noticed."""

from django.db import models
from django.db.models import F, Q

from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7


class OutageInterval(AppendOnlyModel):
    """From the last heartbeat before the outage to the first one after it. It belongs to no organization."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(condition=Q(ended_at__gt=F("began_at")), name="outage_lasts")]
        indexes = [models.Index(fields=["ended_at"], name="outage_ended")]

    def __str__(self) -> str:
        return f"{self.began_at} to {self.ended_at}"


class ClockBeat(models.Model):
    """One row: when a heartbeat last came through beat, queue and worker into the database."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="clock_beat_is_one")]

    def __str__(self) -> str:
        return str(self.at)
