"""The table of violations: refused attempts to break a rule of the record. They count towards misuse."""

from django.db import models
from django.db.models import Q

from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from governance.violations.states import ViolationKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class GovernanceViolation(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=24)
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField(null=True)
    detail = models.CharField(max_length=200, blank=True, help_text="The rule, in our words.")
    at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["organization", "id"], name="violation_by_organization")]
        constraints = [models.CheckConstraint(condition=Q(kind__in=list(ViolationKind)), name="violation_known_kind")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_type}"
