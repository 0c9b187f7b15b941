"""The hold: what must be released, by how many of which tier, until when."""

from django.db import models
from django.db.models import Q

from attempts.models.attempt import Attempt
from attempts.states import ReviewStatus
from governance.models import Organization
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class Review(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="review")
    tier = models.CharField(max_length=63)
    approvals_required = models.PositiveSmallIntegerField()
    action_digest = models.CharField(max_length=64)
    status = models.CharField(max_length=12, default=ReviewStatus.REQUESTED.value)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["expires_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=list(ReviewStatus)), name="review_known_status"),
            models.CheckConstraint(condition=Q(approvals_required__gte=1), name="review_needs_somebody"),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(status="requested"), name="review_due"),
            models.Index(
                fields=["organization", "tier", "expires_at"], condition=Q(status="requested"), name="review_queue"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tier} {self.id}"
