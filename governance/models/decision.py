"""What enforcement decided, with everything it was computed from."""

from django.db import models
from django.db.models import Q

from governance.models.append_only import AppendOnlyModel
from governance.models.contract import Contract
from governance.models.organization import Organization
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class Snapshot(AppendOnlyModel):
    """Content-addressed: the contract, policy or regional profile as it was, stored once however often it decides."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    kind = models.CharField(max_length=12)
    document = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["sha256"]

    def __str__(self) -> str:
        return f"{self.kind} {self.sha256[:12]}"


class EnforcementDecision(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=16)
    reason_code = models.CharField(max_length=64, blank=True)
    rule_id = models.CharField(max_length=64, blank=True)
    policy_version = models.PositiveIntegerField(null=True)
    results = models.JSONField()
    approval = models.JSONField(null=True)
    request = models.JSONField()
    environment = models.JSONField()
    request_sha256 = models.CharField(max_length=64)
    environment_sha256 = models.CharField(max_length=64)
    at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organization", "id"], name="decision_by_organization"),
            models.Index(fields=["contract", "id"], name="decision_by_contract"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=["allow", "needs_approval", "deny"]), name="decision_known_verdict"
            ),
            models.CheckConstraint(
                condition=Q(verdict="allow") | ~Q(reason_code=""), name="decision_refusal_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.reason_code}".strip()
