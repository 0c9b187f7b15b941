"""Messages of the streams that could not be taken in: which one and why, never what it says."""

from django.db import models
from django.db.models import Q

from governance.models import Organization, ServiceAccount
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager
from workflows.states import ParkedStatus, ParkedWhy


class ParkedMessage(models.Model):
    """What the message says stays in its stream as long as streams are kept: unchecked, it may be anything, and must
    not enter the record. Without an organization: nobody known has signed it, so only the installation's
    administrators see it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    service_account = models.ForeignKey(
        ServiceAccount, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    event_type = models.CharField(max_length=100, help_text="Of the stream that it stood in.")
    entry_id = models.CharField(max_length=48, help_text="Of the stream's entry.")
    event_id = models.UUIDField(null=True, help_text="The module's id of it, where that could be read.")
    data_sha256 = models.CharField(max_length=64)
    data_bytes = models.PositiveIntegerField()
    why = models.CharField(max_length=16)
    problems = models.JSONField(default=list, help_text="Pointers and rules, never values.")
    deliveries = models.PositiveIntegerField()
    status = models.CharField(max_length=12, default=ParkedStatus.PARKED.value)
    parked_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    settled_code = models.CharField(max_length=64, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "parked message"
        constraints = [
            models.UniqueConstraint(fields=["event_type", "entry_id"], name="message_parked_once"),
            models.CheckConstraint(condition=Q(status__in=list(ParkedStatus)), name="parked_known_status"),
            models.CheckConstraint(condition=Q(why__in=list(ParkedWhy)), name="parked_known_why"),
            models.CheckConstraint(
                condition=Q(status="parked", settled_at=None, settled_code="")
                | (~Q(status="parked") & Q(settled_at__isnull=False) & ~Q(settled_code="")),
                name="parked_settled_for_a_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], condition=Q(status="parked"), name="parked_waiting"),
            models.Index(fields=["organization", "id"], name="parked_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.entry_id}"
