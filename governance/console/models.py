"""What the console stores for itself: filters that people saved, and decisions counted by the minute. Neither is part
of the record."""

from django.conf import settings
from django.db import models

from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class SavedFilter(models.Model):
    """One person's name for a filter of one list. Search terms are not stored, only filters."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    page = models.CharField(max_length=80, help_text="Which list: application and model.")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "page", "name"], name="saved_filter_once")]

    def __str__(self) -> str:
        return self.name


class IntakeMinute(models.Model):
    """How many decisions of one verdict a minute had. Counted once, when the minute is over; the dashboard adds them
    up."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    minute = models.DateTimeField()
    verdict = models.CharField(max_length=16)
    decisions = models.PositiveIntegerField()

    objects = TenantManager()

    class Meta:
        ordering = ["minute"]
        constraints = [
            models.UniqueConstraint(fields=["minute", "organization", "verdict"], name="intake_minute_once"),
        ]

    def __str__(self) -> str:
        return f"{self.minute:%H:%M} {self.verdict} {self.decisions}"
