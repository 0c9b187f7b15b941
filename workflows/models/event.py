"""Every input of an instance, and everything it sends: the inbound log and the outbox."""

from django.db import models
from django.db.models import Q

from governance.models import Organization
from governance.models.append_only import AppendOnlyModel
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager
from workflows.models.instance import WorkflowInstance
from workflows.states import Drift, EventOutcome, OutboxStatus


class WorkflowEvent(AppendOnlyModel):
    """What came in, from modules, people, the gate and the clock; replay feeds it to the engine again."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    instance = models.ForeignKey(
        WorkflowInstance, null=True, on_delete=models.PROTECT, related_name="log", db_index=False
    )
    number = models.PositiveIntegerField(null=True, help_text="Order within the instance.")
    event_id = models.UUIDField(null=True, help_text="The module's id of it; empty for inputs of our own.")
    event_type = models.CharField(max_length=80)
    source = models.CharField(max_length=8, help_text="module, person, gate or clock")
    case_id = models.UUIDField(null=True)
    correlation_id = models.UUIDField(null=True)
    envelope = models.JSONField()
    facts = models.JSONField(
        default=dict, help_text="What else the engine was told, such as the gate's answers; replay needs it."
    )
    outcome = models.CharField(max_length=12)
    drift = models.CharField(max_length=24, blank=True)
    redrives = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField(help_text="When it counts as having happened: for the clock's, the deadline.")
    received_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "event"
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "event_id"], condition=Q(event_id__isnull=False), name="event_once"
            ),
            models.UniqueConstraint(
                fields=["instance", "number"], condition=Q(instance__isnull=False), name="event_number_once"
            ),
            models.UniqueConstraint(fields=["redrives"], name="event_redriven_once"),
            models.CheckConstraint(condition=Q(outcome__in=list(EventOutcome)), name="event_known_outcome"),
            models.CheckConstraint(condition=Q(drift="") | Q(drift__in=list(Drift)), name="event_known_drift"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], condition=Q(outcome="unmatched"), name="event_unmatched"),
            models.Index(fields=["organization", "id"], condition=~Q(drift=""), name="event_drifted"),
            # Other inputs carry the id of the step that they answer, which has an index of its own.
            models.Index(
                fields=["correlation_id"], condition=Q(number=1) | Q(instance=None), name="event_first_correlation"
            ),
        ]

    def __str__(self) -> str:
        return self.event_type

    @property
    def processed(self) -> bool:
        return self.outcome == EventOutcome.ADVANCED


class Nudge(models.Model):
    """Something below has decided on a step's attempt or review. Written with that decision, taken off by the engine.

    The engine locks the instance first and reviews lock the review first: with a row in between neither waits for the
    other, and nothing is lost when the doorbell is.
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


class OutboxEvent(models.Model):
    """What is to be published; written with the change that it tells of. The id is the event_id, on redelivery too."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    instance = models.ForeignKey(
        WorkflowInstance, null=True, on_delete=models.PROTECT, related_name="outbox", db_index=False
    )
    number = models.PositiveIntegerField(default=0, help_text="Order within the instance.")
    event_type = models.CharField(max_length=80)
    envelope = models.JSONField()
    status = models.CharField(max_length=8, default=OutboxStatus.PENDING.value)
    tries = models.PositiveIntegerField(default=0)
    refusals = models.PositiveIntegerField(default=0, help_text="Tries that the stream refused because of the event.")
    next_try_at = models.DateTimeField()
    last_error = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["id"]
        verbose_name = "outgoing event"
        constraints = [
            models.CheckConstraint(condition=Q(status__in=list(OutboxStatus)), name="outbox_known_status"),
        ]
        indexes = [
            models.Index(fields=["next_try_at", "id"], condition=Q(status="pending"), name="outbox_due"),
            models.Index(
                fields=["instance", "number"], condition=Q(status__in=["pending", "parked"]), name="outbox_unsent_order"
            ),
            models.Index(fields=["organization", "id"], condition=Q(status="parked"), name="outbox_parked"),
        ]

    def __str__(self) -> str:
        return self.event_type
