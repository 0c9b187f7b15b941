"""What people did to instances, and the orders that did it to many."""

from django.db import models
from django.db.models import Q

from governance.models import Note, Organization
from governance.models.append_only import AppendOnlyModel
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager
from workflows.models.instance import WorkflowInstance
from workflows.states import InterventionAction


class BulkIntervention(models.Model):
    """One order for many instances; worked off in the background, item by item."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=12)
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
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
