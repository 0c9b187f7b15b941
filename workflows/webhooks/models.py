"""Webhook endpoints and their secrets, deliveries (one per endpoint and event), their tries, and the ledger cursor."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from workflows.webhooks.states import DisabledWhy, WebhookDeliveryState


class WebhookEndpoint(models.Model):
    """Its secrets are not here: each is derived from the installation's SECRET_KEY and the salt in `WebhookSecret`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    url = models.CharField(max_length=500)
    description = models.CharField(max_length=120, blank=True)
    events = ArrayField(models.CharField(max_length=100), help_text="Names, `prefix.*`, or `*` for everything.")
    enabled = models.BooleanField(default=True)
    disabled_why = models.CharField(max_length=12, blank=True)
    disabled_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed tries since the last good answer.")
    failing_since = models.DateTimeField(null=True)
    held_until = models.DateTimeField(null=True, help_text="After a failure nothing is sent before this.")
    succeeded_at = models.DateTimeField(null=True, help_text="Of the last good answer after a failure, or the first.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(enabled=True, disabled_why="")
                | Q(enabled=False, disabled_why__in=[why.value for why in DisabledWhy]),
                name="webhook_disabled_has_why",
            ),
            models.CheckConstraint(condition=Q(removed_at=None) | Q(enabled=False), name="webhook_removed_is_disabled"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], condition=Q(removed_at=None), name="webhook_by_organization"),
            models.Index(fields=["organization"], condition=Q(enabled=True), name="webhook_enabled"),
        ]

    def __str__(self) -> str:
        return self.description or self.host

    @property
    def host(self) -> str:
        """The host only: the path and query of a webhook URL often contain a secret."""
        return self.url.partition("://")[2].partition("/")[0].partition("?")[0]

    @property
    def status(self) -> str:
        return "enabled" if self.enabled else "disabled"


class WebhookSecret(models.Model):
    """The newest one without an end signs; those before it sign too until they end."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.PROTECT, related_name="secrets")
    salt = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)

    objects = TenantManager(path="endpoint__organization_id")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["endpoint"], condition=Q(ends_at=None), name="webhook_one_lasting_secret"),
        ]

    def __str__(self) -> str:
        return f"secret of {self.created_at:%Y-%m-%d}"


class WebhookDelivery(models.Model):
    """One event for one endpoint. While it is being sent `next_try_at` is the end of the sender's lease."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.PROTECT, related_name="+", db_index=False)
    event_id = models.UUIDField(help_text="The `webhook-id`, the same on every try and for every endpoint.")
    event_type = models.CharField(max_length=100)
    subject_id = models.UUIDField(help_text="What it is about. Sent in order within it.")
    number = models.BigIntegerField(help_text="Order within the subject.")
    body = models.BinaryField(help_text="The exact bytes that are signed and sent; empty once they were erased.")
    body_sha256 = models.CharField(max_length=64)
    state = models.CharField(max_length=12, default=WebhookDeliveryState.PENDING.value)
    tries = models.PositiveIntegerField(default=0, help_text="Begun so far; only the newest one's failure counts.")
    failures = models.PositiveIntegerField(default=0, help_text="Of the schedule; a redelivery begins it anew.")
    next_try_at = models.DateTimeField()
    why = models.CharField(max_length=24, blank=True, help_text="What came of the last try.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "event_id"], name="delivery_once_per_event"),
            models.CheckConstraint(condition=Q(state__in=list(WebhookDeliveryState)), name="delivery_known_state"),
            models.CheckConstraint(
                condition=Q(state="pending", ended_at=None) | (~Q(state="pending") & Q(ended_at__isnull=False)),
                name="delivery_end_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["endpoint", "next_try_at", "id"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(
                fields=["endpoint", "subject_id", "number"], condition=Q(state="pending"), name="delivery_order"
            ),
            models.Index(fields=["endpoint", "id"], name="delivery_by_endpoint"),
            models.Index(fields=["endpoint", "id"], condition=Q(state="failed"), name="delivery_failed"),
            models.Index(fields=["organization", "id"], name="delivery_by_organization"),
            models.Index(fields=["subject_id"], name="delivery_by_subject"),
        ]

    def __str__(self) -> str:
        return self.event_type


class WebhookAttempt(models.Model):
    """One try: what was sent, written before it is sent, and the result. Never the text of the answer, never a secret.

    With the delivery's body these are the exact bytes of the request, so that a receiver can compare. A row without an
    outcome is a try whose sender died; the delivery was then tried again with the same `webhook-id`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    delivery = models.ForeignKey(WebhookDelivery, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    url = models.CharField(max_length=500)
    headers = models.JSONField(help_text="As sent: webhook-id, webhook-timestamp, webhook-signature and the rest.")
    started_at = models.DateTimeField()
    outcome = models.CharField(max_length=24, blank=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="The HTTP status that was answered.")
    duration_ms = models.PositiveIntegerField(null=True)
    response_bytes = models.PositiveIntegerField(null=True, help_text="As much of the answer as was read.")
    response_sha256 = models.CharField(max_length=64, blank=True, help_text="Of these bytes.")
    truncated = models.BooleanField(default=False, help_text="The answer was longer than what is read.")

    objects = TenantManager(path="delivery__organization_id")

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="webhook_attempt_number_once")]

    def __str__(self) -> str:
        return f"try {self.number}"


class WebhookCursor(models.Model):
    """The next position of the sealed ledger to make deliveries from. One row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    position = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="webhook_cursor_is_one")]

    def __str__(self) -> str:
        return str(self.position)
