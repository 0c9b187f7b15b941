"""Runs, their steps (a row per try), interventions, bulk orders, and signals to the engine."""

from typing import TYPE_CHECKING

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Case, F, Q, Value, When

from governance.boundary.models import Note
from governance.contracts.models import Contract
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization, Product
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.states import Mode
from workflows.runs.states import ENDED, STEP_OPEN, InstanceStatus, InterventionAction, StepStatus

if TYPE_CHECKING:  # a row is not made of what reads it
    from governance.enforcement.selectors import OwnArrival

GOING = [status.value for status in InstanceStatus if status not in ENDED and status != InstanceStatus.HALTED]

LIVE = [*GOING, InstanceStatus.HALTED.value]  # not ended: a person may still continue a halted run


class WorkflowInstance(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    product = models.ForeignKey(Product, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    case_id = models.UUIDField()
    definition = models.ForeignKey(WorkflowDefinition, on_delete=models.PROTECT, related_name="+", db_index=False)
    contract = models.ForeignKey(Contract, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    definition_sha256 = models.CharField(max_length=64, help_text="The frozen copy that this run follows.")
    mode = models.CharField(max_length=16)
    state = models.CharField(max_length=16, default=InstanceStatus.QUEUED.value)
    halt_reason = models.CharField(max_length=64, blank=True)
    halt_step_id = models.CharField(max_length=64, blank=True)
    resume_step_id = models.CharField(max_length=64, blank=True)
    cancelled_reason = models.CharField(max_length=64, blank=True)
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    context = models.JSONField(default=dict)
    early = models.JSONField(default=dict, help_text="Client-driven: completions that came before their turn.")
    tokens = models.JSONField(
        default=dict, help_text="Format 2: blocks under way, tries and outputs inside them. Empty: format 1."
    )
    input = models.JSONField(null=True, help_text="Format 2: what the run was started with.")
    output = models.JSONField(null=True, help_text="Format 2: what the definition says it gives at its end.")
    definition_slug = models.CharField(max_length=63, blank=True, help_text="With a business key.")
    business_key = models.CharField(max_length=128, blank=True, help_text="The caller's name for the case.")
    secret = models.CharField(
        max_length=64, blank=True, help_text="Part of every correlation id of the run, and never shown."
    )
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

    # Not columns. The steps as they were read with the run's lock, for the advance that follows.
    locked_steps: "list[WorkflowStep] | None" = None
    # What intake would check about its contract, read with the lock: under the send lock it holds until the commit.
    locked_arrival: "OwnArrival | None" = None
    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "run"
        constraints = [
            # With a business key the same case may run again after its end; `instance_one_per_key` says when.
            models.UniqueConstraint(
                F("organization"),
                F("case_id"),
                Case(When(business_key="", then=Value(None)), default=F("id")),
                condition=Q(superseded_by=None),
                nulls_distinct=False,
                name="instance_one_per_case",
            ),
            models.UniqueConstraint(
                fields=["organization", "definition_slug", "business_key"],
                condition=~Q(business_key="") & Q(state__in=LIVE),
                name="instance_one_per_key",
            ),
            models.CheckConstraint(
                condition=Q(business_key="") | ~Q(definition_slug=""),
                name="instance_key_has_slug",
            ),
            models.CheckConstraint(condition=Q(state__in=list(InstanceStatus)), name="instance_known_status"),
            models.CheckConstraint(condition=Q(mode__in=list(Mode)), name="instance_known_mode"),
            models.CheckConstraint(condition=~Q(state="halted") | ~Q(halt_reason=""), name="instance_halt_has_reason"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="instance_by_organization"),
            BrinIndex(fields=["retention_until"], name="instance_retention"),
            # For the scheduled task that looks for recent ends without evidence.
            BrinIndex(fields=["completed_at"], name="instance_ended"),
            models.Index(fields=["organization", "state", "id"], name="instance_by_status"),
            models.Index(fields=["deadline_at"], condition=Q(state__in=GOING), name="instance_deadline"),
            models.Index(fields=["organization", "id"], condition=Q(state="queued"), name="instance_queue"),
            models.Index(
                fields=["organization", "case_id"], condition=Q(superseded_by__isnull=False), name="instance_superseded"
            ),
            models.Index(
                fields=["organization", "business_key"], condition=~Q(business_key=""), name="instance_by_business_key"
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
    scope = models.TextField(
        blank=True, help_text="The way to it through blocks: after.1:mail, each.1:3/again.1:2; empty at the root."
    )
    state = models.CharField(max_length=16)
    attempt = models.PositiveIntegerField()
    retries = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    timeout_at = models.DateTimeField(null=True)
    next_eligible_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True, help_text="From then on it is overdue; nothing ends by that.")
    overdue = models.BooleanField(default=False)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    governed_attempt = models.UUIDField(null=True, help_text="The attempt through which its request passed.")
    request_event = models.UUIDField(null=True, help_text="The outgoing event that asks for it.")

    objects = TenantManager(path="instance__organization_id")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["instance", "number"], name="step_number_once"),
            models.CheckConstraint(condition=Q(state__in=list(StepStatus)), name="step_known_status"),
        ]
        indexes = [
            models.Index(
                fields=["timeout_at"],
                condition=Q(state__in=["in_progress", "waiting_approval"], timeout_at__isnull=False),
                name="step_timeout",
            ),
            models.Index(
                fields=["next_eligible_at"],
                condition=Q(state="pending", next_eligible_at__isnull=False),
                name="step_retry_due",
            ),
            models.Index(
                fields=["due_at"],
                condition=Q(state__in=sorted(STEP_OPEN), due_at__isnull=False, overdue=False),
                name="step_due",
            ),
            # An advance reads the open steps of a run, and no others.
            models.Index(fields=["instance"], condition=Q(state__in=sorted(STEP_OPEN)), name="step_open"),
        ]

    def __str__(self) -> str:
        return f"{self.step_id} {self.attempt}"

    @property
    def correlation_id(self) -> str:
        return str(self.id)


class WorkflowInstanceCurrentStep(models.Model):
    """The open steps, as a database view: there is no second table to write and to keep consistent."""

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


class BulkIntervention(models.Model):
    """One order for many runs. A worker does it in the background, item by item."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=12)
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    details = models.JSONField(default=dict, help_text="Of a migration: where the runs go, and the mapping of steps.")
    ordered_by = models.UUIDField()
    actor_kind = models.CharField(max_length=8)
    created_at = models.DateTimeField()
    resume_at = models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died.")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(action__in=list(InterventionAction)), name="bulk_known_action"),
        ]
        indexes = [models.Index(fields=["resume_at"], condition=Q(finished_at=None), name="bulk_unfinished")]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"


class BulkItem(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    bulk = models.ForeignKey(BulkIntervention, on_delete=models.PROTECT, related_name="items", db_index=False)
    instance = models.ForeignKey(WorkflowInstance, on_delete=models.PROTECT, related_name="+", db_index=False)
    status = models.CharField(max_length=8, default="waiting")
    problem = models.CharField(max_length=80, blank=True)
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager(path="bulk__organization_id")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["bulk", "instance"], name="bulk_item_once"),
            models.CheckConstraint(condition=Q(status__in=["waiting", "done", "refused"]), name="bulk_item_status"),
        ]
        indexes = [models.Index(fields=["bulk", "id"], condition=Q(status="waiting"), name="bulk_item_waiting")]

    def __str__(self) -> str:
        return self.status


class WorkflowIntervention(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    instance = models.ForeignKey(
        WorkflowInstance, on_delete=models.PROTECT, related_name="interventions", db_index=False
    )
    action = models.CharField(max_length=12)
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    bulk = models.ForeignKey(BulkIntervention, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    before_state = models.JSONField()
    after_state = models.JSONField()
    created_at = models.DateTimeField()

    objects = TenantManager(path="instance__organization_id")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(action__in=list(InterventionAction)), name="intervention_known_action"),
            models.CheckConstraint(condition=~Q(reason_code=""), name="intervention_has_reason"),
        ]
        indexes = [models.Index(fields=["instance", "id"], name="intervention_by_instance")]

    def __str__(self) -> str:
        return self.action


class Nudge(models.Model):
    """An attempt or a review of a step was decided. Written with that decision, deleted when the engine has advanced.

    The engine locks the run first, and a vote locks the review first. With a row in between neither waits for the
    other, and nothing is lost if the wake-up is.

    In the glossary this is a signal; the model keeps the name of its table.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    step = models.UUIDField()
    kind = models.CharField(max_length=8, help_text="attempt or review")
    payload = models.JSONField()
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    due_at = models.DateTimeField(help_text="When the tick takes it up, should the doorbell have been unheard.")
    at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["due_at"], name="nudge_due")]

    def __str__(self) -> str:
        return self.kind
