"""The case of a failed attempt, open until a person has found out what happened and said what follows."""

from django.db import models
from django.db.models import Q

from attempts.lifecycle.models import Attempt
from attempts.quarantine.states import InvestigatedOutcome, QuarantineCategory, Resolution
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class QuarantineCase(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="quarantine_case")
    category = models.CharField(max_length=24)
    reason_code = models.CharField(max_length=64)
    escalation_owner = models.CharField(max_length=64)
    escalate_at = models.DateTimeField()
    escalated_at = models.DateTimeField(null=True)
    incident_ref = models.CharField(max_length=200, blank=True)
    finding = models.CharField(max_length=16, blank=True)
    evidence_ref = models.CharField(max_length=200, blank=True)
    found_by_ref = models.CharField(max_length=64, blank=True)
    resolution = models.CharField(max_length=20, blank=True)
    resolved_by_ref = models.CharField(max_length=64, blank=True)
    resolved_at = models.DateTimeField(null=True)
    follow_up = models.ForeignKey(Attempt, null=True, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(category__in=list(QuarantineCategory)), name="quarantine_known_category"
            ),
            models.CheckConstraint(
                condition=Q(finding__in=["", *InvestigatedOutcome]), name="quarantine_known_finding"
            ),
            models.CheckConstraint(condition=Q(resolution__in=["", *Resolution]), name="quarantine_known_resolution"),
            models.CheckConstraint(
                condition=Q(resolution="", resolved_at=None) | (~Q(resolution="") & Q(resolved_at__isnull=False)),
                name="quarantine_resolved_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], condition=Q(resolution=""), name="quarantine_open"),
            models.Index(fields=["organization", "id"], condition=~Q(resolution=""), name="quarantine_resolved"),
            models.Index(
                fields=["escalate_at"], condition=Q(resolution="", escalated_at=None), name="quarantine_escalation_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.category} {self.attempt_id}"
