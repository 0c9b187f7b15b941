"""Reviews of held attempts and of workflow steps for people, the votes in them with their signatures, delegations of a
tier."""

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import AttemptState
from attempts.reviews.states import DelegationEnd, DelegationState, ReviewKind, ReviewStatus, VoteVerdict
from governance.boundary.models import Note
from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class Review(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=12, default=ReviewKind.RELEASE.value)
    attempt = models.ForeignKey(
        Attempt, null=True, on_delete=models.PROTECT, related_name="reviews", related_query_name="review"
    )
    decision = models.ForeignKey(
        EnforcementDecision,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The decision that asked for it; empty for a human review, and for holds from before.",
    )
    origin_step = models.UUIDField(null=True, help_text="The workflow step that asks for a person's judgement.")
    contract = models.ForeignKey(
        Contract,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="Of the run, for a workflow step: it says whether votes are signed.",
    )
    subject_ref = models.CharField(max_length=200, blank=True, help_text="Reference of the case that it is about.")
    label = models.CharField(max_length=200, blank=True)
    tier = models.CharField(max_length=63, help_text="The first of them where several tiers must sign.")
    approvals_required = models.PositiveSmallIntegerField(help_text="Of all tiers together.")
    buckets = models.JSONField(default=list, help_text="How many of which tier, where several must sign.")
    open_tiers = models.JSONField(default=list, help_text="Of the buckets: whose signature still helps.")
    excluded = models.JSONField(default=list, help_text="Commitments of people who may not decide, and why.")
    task = models.JSONField(
        null=True, help_text="Of a human task: title, facts, form, outcomes, when it is due, who asked for the run."
    )
    action_digest = models.CharField(max_length=64)
    status = models.CharField(max_length=12, default=ReviewStatus.REQUESTED.value)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    requeues = models.PositiveSmallIntegerField(default=0, help_text="How often somebody declined it.")
    remind_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(
        null=True, help_text="When the organization's notification routes were looked at."
    )
    claimed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    claimed_until = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["expires_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=list(ReviewStatus)), name="review_known_status"),
            models.CheckConstraint(condition=Q(approvals_required__gte=1), name="review_needs_somebody"),
            models.CheckConstraint(
                condition=Q(kind="release", attempt__isnull=False, origin_step=None, expires_at__isnull=False)
                | Q(kind="human_review", attempt=None, origin_step__isnull=False, task__isnull=True)
                | Q(kind="human_task", attempt=None, origin_step__isnull=False),
                name="review_fits_its_kind",
            ),
            models.UniqueConstraint(
                fields=["attempt"],
                condition=Q(status="requested", attempt__isnull=False),
                name="review_one_open_per_attempt",
            ),
            models.UniqueConstraint(
                fields=["origin_step"], condition=Q(status="requested"), name="review_one_open_per_step"
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(status="requested"), name="review_due"),
            models.Index(
                fields=["remind_at"], condition=Q(status="requested", reminded_at=None), name="review_reminder_due"
            ),
            models.Index(
                fields=["organization", "tier", "expires_at"], condition=Q(status="requested"), name="review_queue"
            ),
            models.Index(
                fields=["organization", "expires_at", "id"], condition=Q(status="requested"), name="review_by_deadline"
            ),
            models.Index(
                fields=["organization", "-decided_at", "-id"],
                condition=Q(decided_at__isnull=False),
                name="review_history",
            ),
            models.Index(
                fields=["organization", "status", "id"], condition=~Q(status="requested"), name="review_ended"
            ),
            models.Index(
                fields=["organization", "requested_at", "id"],
                condition=Q(status="requested", announced_at=None),
                name="review_unannounced",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tier} {self.id}"

    @property
    def parts(self) -> list[dict[str, Any]]:
        """How many people of which tier must approve, for one tier or several."""
        return self.buckets or [{"tier": self.tier, "approvals_required": self.approvals_required}]

    def holds(self, attempt: Attempt) -> bool:
        """Whether the attempt waits for this review: held when it came in, or held again before an act."""
        if attempt.state == AttemptState.APPROVED:
            return self.decision_id not in {None, attempt.decision_id}
        return bool(attempt.state == AttemptState.REVIEW_REQUIRED)


class ReviewVote(AppendOnlyModel):
    """One person's verdict in one review, bound to the digest of the action that they saw."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="votes", db_index=False)
    voter_ref = models.CharField(max_length=64, help_text="The person's commitment; see PersonReference.")
    on_behalf_of_ref = models.CharField(max_length=64, blank=True, help_text="Who delegated to the voter.")
    verdict = models.CharField(max_length=8)
    tier = models.CharField(max_length=63, blank=True, help_text="The tier that was delegated to the voter, if so.")
    reason_code = models.CharField(max_length=64, blank=True)
    result_ref = models.CharField(max_length=200, blank=True, help_text="Where the overriding judgement is kept.")
    result_sha256 = models.CharField(max_length=64, blank=True)
    outcome = models.CharField(max_length=64, blank=True, help_text="Of a human task: the one that was chosen.")
    form = models.JSONField(null=True, help_text="Of a human task: the form as it was filled in.")
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    action_digest = models.CharField(max_length=64)
    at = models.DateTimeField()

    objects = TenantManager(path="review__organization_id")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["voter_ref", "review"], name="vote_by_person")]
        constraints = [
            # One person, one vote, also if two requests arrive at the same moment.
            models.UniqueConstraint(fields=["review", "voter_ref"], name="vote_once_per_person"),
            models.CheckConstraint(condition=Q(verdict__in=list(VoteVerdict)), name="vote_known_verdict"),
            models.CheckConstraint(
                condition=~Q(verdict__in=["reject", "decline"]) | ~Q(reason_code=""), name="vote_refusal_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(verdict="override") | Q(result_ref="", result_sha256=""), name="vote_result_is_an_override"
            ),
            models.CheckConstraint(
                condition=Q(verdict="answer") | Q(outcome="", form__isnull=True), name="vote_outcome_is_an_answer"
            ),
        ]

    def __str__(self) -> str:
        return self.verdict


class VoteChallenge(models.Model):
    """A nonce that one person may sign once, for one verdict in one review. It is used up with the vote, also with one
    that is refused; rows that are used or expired are deleted when the person asks for the next one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    review = models.ForeignKey(Review, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=8)
    action_digest = models.CharField(max_length=64)
    nonce = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    objects = TenantManager(path="review__organization_id")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=list(VoteVerdict)), name="vote_challenge_known_verdict"),
        ]

    def __str__(self) -> str:
        return self.verdict


class VoteSignature(AppendOnlyModel):
    """A person's signature under their vote, as their authenticator gave it. It is checked with the public key of the
    ledger entry `registered_entry`; `public_key` here is a copy for readers."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    vote = models.OneToOneField(ReviewVote, on_delete=models.PROTECT, related_name="signature")
    passkey = models.UUIDField(help_text="The passkey; the subject of the ledger entry of its registration.")
    registered_entry = models.UUIDField(help_text="The ledger entry of the registration.")
    registered_at = models.DateTimeField()
    algorithm = models.IntegerField(help_text="COSE: -7 ES256, -8 EdDSA, -257 RS256.")
    public_key = models.TextField(help_text="SubjectPublicKeyInfo, base64.")
    rp_id = models.CharField(max_length=253)
    nonce = models.CharField(max_length=64)
    credential_id = models.BinaryField(max_length=1023)
    authenticator_data = models.BinaryField(max_length=2048)
    client_data_json = models.BinaryField(max_length=2048)
    signature = models.BinaryField(max_length=1024)

    objects = TenantManager(path="vote__review__organization_id")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["nonce"], name="vote_signature_nonce_once"),
        ]

    def __str__(self) -> str:
        return f"signature of {self.passkey}"

    def as_document(self) -> dict[str, Any]:
        """As the evidence bundle shows it. Its hash stands in the ledger entry of the vote."""
        parts = ("credential_id", "authenticator_data", "client_data_json", "signature")
        return {
            "passkey": str(self.passkey),
            "registered_entry": str(self.registered_entry),
            "algorithm": self.algorithm,
            "public_key": self.public_key,
            "rp_id": self.rp_id,
            "nonce": self.nonce,
            **{part: b64encode(bytes(getattr(self, part))).decode() for part in parts},
        }


LONGEST = timedelta(days=14)  # a delegation that somebody forgot must end by itself


class Delegation(models.Model):
    """One person stands in for another in a tier that both have, for some time and for a reason. It gives no vote.

    Only its end is ever written to the row; the database refuses other changes.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    tier = models.CharField(max_length=63)
    from_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    to_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason_code = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="It ends then by itself.")
    ended_at = models.DateTimeField(null=True, help_text="When it really ended.")
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="Empty if no person ended it.",
    )
    end_cause = models.CharField(max_length=12, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="delegation_has_length"),
            models.CheckConstraint(condition=Q(ends_at__lte=F("starts_at") + LONGEST), name="delegation_is_bounded"),
            models.CheckConstraint(condition=~Q(from_user=F("to_user")), name="delegation_to_somebody_else"),
            models.CheckConstraint(condition=~Q(reason_code=""), name="delegation_has_a_reason"),
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_by=None, end_cause="")
                | Q(ended_at__isnull=False, end_cause__in=list(DelegationEnd)),
                name="delegation_end_has_a_cause",
            ),
            # Planned ones count too: two that overlap would leave open who stands in.
            models.UniqueConstraint(
                fields=["organization", "from_user", "tier"],
                condition=Q(ended_at=None),
                name="delegation_one_at_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "-id"], name="delegation_newest"),
            models.Index(fields=["ends_at"], condition=Q(ended_at=None), name="delegation_due"),
            models.Index(
                fields=["organization", "tier", "to_user"], condition=Q(ended_at=None), name="delegation_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tier} until {self.ends_at:%Y-%m-%d}"

    def state_at(self, now: datetime) -> DelegationState:
        if self.ended_at is not None or self.ends_at <= now:
            return DelegationState.ENDED
        return DelegationState.ACTIVE if self.starts_at <= now else DelegationState.PLANNED
