"""The log of a run's inputs, the outbox, and parked messages of the streams."""

from django.db import models
from django.db.models import Q

from governance.people.models import ServiceAccount
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from workflows.events.states import EventOutcome, OutboxStatus, ParkedStatus, ParkedWhy
from workflows.runs.models import WorkflowInstance
from workflows.runs.states import Drift


class WorkflowEvent(AppendOnlyModel):
    """One input of a run: from modules, people, the gate or the clock. Replay feeds them to the engine again."""

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
            # Only rows that redrive something: otherwise every event writes an empty key into the index.
            models.UniqueConstraint(
                fields=["redrives"], condition=Q(redrives__isnull=False), name="event_redriven_once"
            ),
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


class OutboxEvent(models.Model):
    """An event to publish, written with the change that it reports. Its id is the event_id, also when it is sent
    again."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    instance = models.ForeignKey(
        WorkflowInstance, null=True, on_delete=models.PROTECT, related_name="outbox", db_index=False
    )
    number = models.PositiveIntegerField(default=0, help_text="Order within the instance.")
    event_type = models.CharField(max_length=80)
    envelope = models.JSONField()
    call = models.JSONField(null=True, help_text="Of a request over http: how it is called. Empty: a stream.")
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


class ParkedMessage(models.Model):
    """A message that was refused, as metadata. Its content stays in its stream: unchecked, it may contain anything, and
    must not enter the record. Without an organization: no known key signed it, and only the installation's
    administrators see it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    service_account = models.ForeignKey(
        ServiceAccount, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    event_type = models.CharField(max_length=100, help_text="Of the stream that it stood in.")
    entry_id = models.CharField(max_length=48, help_text="Of the stream's entry.")
    event_id = models.UUIDField(null=True, help_text="The module's id of it, where that could be read.")
    data_sha256 = models.CharField(max_length=64)
    data_bytes = models.PositiveIntegerField()
    why = models.CharField(max_length=16)
    problems = models.JSONField(default=list, help_text="Pointers and rules, never values.")
    deliveries = models.PositiveIntegerField()
    status = models.CharField(max_length=12, default=ParkedStatus.PARKED.value)
    parked_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    settled_code = models.CharField(max_length=64, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "parked message"
        constraints = [
            models.UniqueConstraint(fields=["event_type", "entry_id"], name="message_parked_once"),
            models.CheckConstraint(condition=Q(status__in=list(ParkedStatus)), name="parked_known_status"),
            models.CheckConstraint(condition=Q(why__in=list(ParkedWhy)), name="parked_known_why"),
            models.CheckConstraint(
                condition=Q(status="parked", settled_at=None, settled_code="")
                | (~Q(status="parked") & Q(settled_at__isnull=False) & ~Q(settled_code="")),
                name="parked_settled_for_a_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], condition=Q(status="parked"), name="parked_waiting"),
            models.Index(fields=["organization", "id"], name="parked_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.entry_id}"
