"""One run of a definition for one case, and its steps: a row per try."""

from typing import TYPE_CHECKING

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from governance.models import Contract, Organization, Product
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager
from workflows.models.definition import WorkflowDefinition
from workflows.states import ENDED, InstanceStatus, Mode, StepStatus

if TYPE_CHECKING:  # a row is not made of what reads it
    from governance.selectors.intake import OwnArrival

GOING = [status.value for status in InstanceStatus if status not in ENDED and status != InstanceStatus.HALTED]


class WorkflowInstance(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    product = models.ForeignKey(Product, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    case_id = models.UUIDField()
    definition = models.ForeignKey(WorkflowDefinition, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    definition_sha256 = models.CharField(max_length=64, help_text="The frozen copy that this run follows.")
    mode = models.CharField(max_length=16)
    status = models.CharField(max_length=16, default=InstanceStatus.QUEUED.value, db_column="state")
    halt_reason = models.CharField(max_length=64, blank=True)
    halt_step_id = models.CharField(max_length=64, blank=True)
    resume_step_id = models.CharField(max_length=64, blank=True)
    cancelled_reason = models.CharField(max_length=64, blank=True)
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    context = models.JSONField(default=dict)
    early = models.JSONField(default=dict, help_text="Client-driven: completions that came before their turn.")
    events = models.PositiveIntegerField(default=0, help_text="Inputs so far; the next one's number is one more.")
    emitted = models.PositiveIntegerField(default=0, help_text="Outgoing events so far.")
    writes = models.PositiveIntegerField(default=0, help_text="Governed requests sent so far.")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    retention_until = models.DateTimeField(
        null=True, help_text="Stamped at the start by the regional profile; empty: unknown, so kept."
    )
    erased_at = models.DateTimeField(null=True)

    # Its steps as they were read with its lock, for the advance that follows.
    held_steps: "list[WorkflowStep] | None" = None
    # Its contract's door as it was read with the lock, behind the gate: open or not until the transaction ends.
    held_arrival: "OwnArrival | None" = None
    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "case_id"],
                condition=Q(superseded_by=None),
                name="instance_one_per_case",
            ),
            models.CheckConstraint(condition=Q(status__in=list(InstanceStatus)), name="instance_known_status"),
            models.CheckConstraint(condition=Q(mode__in=list(Mode)), name="instance_known_mode"),
            models.CheckConstraint(condition=~Q(status="halted") | ~Q(halt_reason=""), name="instance_halt_has_reason"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="instance_by_organization"),
            BrinIndex(fields=["retention_until"], name="instance_retention"),
            models.Index(fields=["organization", "status", "id"], name="instance_by_status"),
            models.Index(fields=["deadline_at"], condition=Q(status__in=GOING), name="instance_deadline"),
            models.Index(fields=["organization", "id"], condition=Q(status="queued"), name="instance_queue"),
            models.Index(
                fields=["organization", "case_id"], condition=Q(superseded_by__isnull=False), name="instance_superseded"
            ),
        ]

    def __str__(self) -> str:
        return f"case {self.case_id}"


class WorkflowStep(models.Model):
    """The id is the correlation id of its request."""

    id = models.UUIDField(primary_key=True, editable=False)
    instance = models.ForeignKey(WorkflowInstance, on_delete=models.PROTECT, related_name="steps", db_index=False)
    number = models.PositiveIntegerField(help_text="Order within the instance.")
    step_id = models.CharField(max_length=64)
    step_kind = models.CharField(max_length=64)
    status = models.CharField(max_length=16, db_column="state")
    attempt = models.PositiveIntegerField()
    retries = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    timeout_at = models.DateTimeField(null=True)
    next_eligible_at = models.DateTimeField(null=True)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    governed_attempt = models.UUIDField(null=True, help_text="The attempt through which its request passed.")

    objects = TenantManager(path="instance__organization_id")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["instance", "number"], name="step_number_once"),
            models.CheckConstraint(condition=Q(status__in=list(StepStatus)), name="step_known_status"),
        ]
        indexes = [
            models.Index(
                fields=["timeout_at"],
                condition=Q(status__in=["in_progress", "waiting_approval"], timeout_at__isnull=False),
                name="step_timeout",
            ),
            models.Index(
                fields=["next_eligible_at"],
                condition=Q(status="pending", next_eligible_at__isnull=False),
                name="step_retry_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step_id} {self.attempt}"

    @property
    def correlation_id(self) -> str:
        return str(self.id)


class WorkflowInstanceCurrentStep(models.Model):
    """What is under way: a view of the open steps. Nothing to keep in step, and no write for it."""

    step_row = models.OneToOneField(
        WorkflowStep, primary_key=True, on_delete=models.DO_NOTHING, related_name="+", db_column="step_row_id"
    )
    instance = models.ForeignKey(WorkflowInstance, on_delete=models.DO_NOTHING, related_name="current_steps")
    step_id = models.CharField(max_length=64)

    objects = TenantManager(path="instance__organization_id")

    class Meta:
        managed = False
        db_table = "workflows_currentstep"

    def __str__(self) -> str:
        return self.step_id
