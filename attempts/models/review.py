"""The hold: what must be released, by how many of which tier, until when; and the votes on it."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from attempts.models.attempt import Attempt
from attempts.states import ReviewStatus, VoteVerdict
from governance.models import Note, Organization
from governance.models.append_only import AppendOnlyModel
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
    remind_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    claimed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    claimed_until = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)

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
                fields=["remind_at"], condition=Q(status="requested", reminded_at=None), name="review_reminder_due"
            ),
            models.Index(
                fields=["organization", "tier", "expires_at"], condition=Q(status="requested"), name="review_queue"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tier} {self.id}"


class ReviewVote(AppendOnlyModel):
    """One person's word on one review, bound to the digest of what they saw."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="votes", db_index=False)
    voter_ref = models.CharField(max_length=64, help_text="The person's commitment; see PersonReference.")
    on_behalf_of_ref = models.CharField(max_length=64, blank=True, help_text="Who delegated to the voter.")
    verdict = models.CharField(max_length=8)
    reason_code = models.CharField(max_length=64, blank=True)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    action_digest = models.CharField(max_length=64)
    at = models.DateTimeField()

    objects = TenantManager(path="review__organization_id")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["review", "voter_ref"], name="vote_once_per_person"),
            models.CheckConstraint(condition=Q(verdict__in=list(VoteVerdict)), name="vote_known_verdict"),
            models.CheckConstraint(condition=Q(verdict="approve") | ~Q(reason_code=""), name="vote_reject_has_reason"),
        ]

    def __str__(self) -> str:
        return self.verdict


class Delegation(models.Model):
    """For a time, one person decides in another's place. Never on what either of them asked for."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    tier = models.CharField(max_length=63)
    from_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    to_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="delegation_has_length"),
            models.CheckConstraint(condition=~Q(from_user=F("to_user")), name="delegation_to_somebody_else"),
        ]

    def __str__(self) -> str:
        return f"{self.tier} until {self.ends_at:%Y-%m-%d}"
