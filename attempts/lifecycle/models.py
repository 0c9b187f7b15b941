"""Attempts, their transitions and their slots."""

from django.contrib.postgres.indexes import BrinIndex, HashIndex
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from attempts.lifecycle.states import AttemptState, RuntimeMode
from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.people.models import ServiceAccount
from governance.sql.guards import AppendOnlyModel, StateMachineModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager

S = AttemptState


class Attempt(StateMachineModel):
    # Foreign keys have no index of their own: every intake would pay for each of them. Those without a constraint name
    # rows that stay: a trigger looks that they are there, without a foreign key's lock (governance/sql/references.py).
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, on_delete=models.PROTECT, related_name="+", db_index=False)
    decision = models.ForeignKey(
        EnforcementDecision, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    caller = models.ForeignKey(
        ServiceAccount, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    workflow_slug = models.CharField(max_length=63)
    contract_version = models.PositiveIntegerField()
    request_trace_id = models.CharField(max_length=128)
    idempotency_key = models.CharField(max_length=200, blank=True)
    patient_context_ref = models.CharField(max_length=200, blank=True)
    review_owner = models.CharField(max_length=64)
    runtime_mode = models.CharField(max_length=16)
    connector = models.CharField(max_length=64)
    operation = models.CharField(max_length=128, blank=True)
    target_ref = models.CharField(max_length=200, blank=True)
    effect = models.CharField(max_length=12)
    risk_tier = models.CharField(max_length=8)
    payload_ref = models.CharField(max_length=200, blank=True)
    payload_sha256 = models.CharField(max_length=64, blank=True)
    fields = models.JSONField(default=list)
    action_digest = models.CharField(max_length=64)
    metadata = models.JSONField(default=dict)
    state = FSMField(
        max_length=24, choices=[(s.value, s.value) for s in S], default=S.RECEIVED.value, protected=True, editable=False
    )
    reason_code = models.CharField(max_length=64, blank=True)
    retry_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    compensates = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    origin_step = models.UUIDField(null=True, help_text="The workflow step that opened it.")
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_token = models.PositiveIntegerField(default=0, help_text="Grows with every lease; a smaller one is stale.")
    lease_expires_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0, help_text="Dispatch intents so far.")
    next_eligible_at = models.DateTimeField(null=True, help_text="When it may be leased; empty while it may not.")
    queued_until = models.DateTimeField(null=True, help_text="Waits for a place in a cap until then.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    retention_until = models.DateTimeField(
        null=True, help_text="Stamped at admission by the regional profile; empty: unknown, so kept."
    )
    erased_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organization", "id"], name="attempt_by_organization"),
            models.Index(fields=["organization", "state", "id"], name="attempt_by_state"),
            # Partial: scheduled tasks and leases read only what is due, however large the table is.
            models.Index(
                fields=["next_eligible_at"],
                condition=Q(state="approved-for-execution", next_eligible_at__isnull=False),
                name="attempt_ready",
            ),
            # For the fair choice among the attempts that our workers execute: attempts/execution/sql.py.
            models.Index(
                fields=["organization", "connector", "workflow_slug", "next_eligible_at"],
                condition=Q(
                    ~Q(connector="external"),
                    state="approved-for-execution",
                    next_eligible_at__isnull=False,
                    queued_until__isnull=True,
                    runtime_mode="active",
                    origin_step__isnull=True,
                ),
                name="attempt_lines",
            ),
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(state="approved-for-execution", lease_expires_at__isnull=False),
                name="attempt_leased",
            ),
            models.Index(fields=["queued_until"], condition=Q(queued_until__isnull=False), name="attempt_queued"),
            models.Index(
                fields=["organization", "workflow_slug", "id"],
                condition=Q(queued_until__isnull=False),
                name="attempt_queue_order",
            ),
            # BRIN: rows come nearly in the order of this time, and it costs an intake almost nothing. A row changes the
            # index only in the first range of pages or in one that a VACUUM has summarized: hence small ranges.
            BrinIndex(fields=["retention_until"], name="attempt_retention", pages_per_range=16),
            # For the scheduled task that looks for recent ends without evidence. Attempts end nearly in their order.
            BrinIndex(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="attempt_ended"),
            HashIndex(fields=["request_trace_id"], name="attempt_by_trace"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(S)), name="attempt_known_state"),
            models.CheckConstraint(condition=Q(runtime_mode__in=list(RuntimeMode)), name="attempt_known_mode"),
            models.CheckConstraint(
                condition=~Q(state__in=["preflight-denied", "failed-quarantined"]) | ~Q(reason_code=""),
                name="attempt_refusal_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow_slug}/{self.contract_version} {self.id}"

    @transition(field=state, source=S.RECEIVED.value, target=S.DEDUPLICATED.value)
    def deduplicate(self) -> None:
        """The key is new, or the contract keeps a timeline."""

    @transition(field=state, source=S.DEDUPLICATED.value, target=S.REVIEW_REQUIRED.value)
    def hold(self, *, reason_code: str) -> None:
        self.reason_code = reason_code

    @transition(field=state, source=[S.DEDUPLICATED.value, S.REVIEW_REQUIRED.value], target=S.APPROVED.value)
    def approve(self) -> None:
        self.reason_code = ""

    @transition(
        field=state,
        source=[S.DEDUPLICATED.value, S.REVIEW_REQUIRED.value, S.APPROVED.value],
        target=S.PREFLIGHT_DENIED.value,
    )
    def deny(self, *, reason_code: str) -> None:
        self.reason_code = reason_code

    @transition(field=state, source=S.APPROVED.value, target=S.COMPLETED.value)
    def complete(self) -> None:
        self.reason_code = ""

    @transition(field=state, source=S.APPROVED.value, target=S.QUARANTINED.value)
    def quarantine(self, *, reason_code: str) -> None:
        self.reason_code = reason_code


class AttemptTransition(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    attempt = models.ForeignKey(
        Attempt, on_delete=models.PROTECT, related_name="transitions", db_index=False, db_constraint=False
    )
    from_state = models.CharField(max_length=24)
    to_state = models.CharField(max_length=24)
    reason_code = models.CharField(max_length=64, blank=True)
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField()

    objects = TenantManager(path="attempt__organization_id")

    class Meta:
        ordering = ["id"]
        # Without the id: an attempt has few transitions, and each intake writes two entries of this index.
        indexes = [models.Index(fields=["attempt"], name="transition_by_attempt")]

    def __str__(self) -> str:
        return f"{self.from_state} -> {self.to_state}"


class Slot(models.Model):
    """An attempt that is under way. One that waits (for people, a slot, a retry) has no row."""

    attempt = models.OneToOneField(
        Attempt, primary_key=True, on_delete=models.CASCADE, related_name="slot", db_constraint=True
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    workflow_slug = models.CharField(max_length=63)
    context = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the patient context.")
    key = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the idempotency key.")

    objects = TenantManager()

    class Meta:
        indexes = [
            models.Index(fields=["organization", "workflow_slug"], name="slot_by_workflow"),
            models.Index(fields=["organization", "context"], condition=~Q(context=""), name="slot_by_context"),
            models.Index(fields=["organization", "key"], condition=~Q(key=""), name="slot_by_key"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow_slug} {self.attempt_id}"
