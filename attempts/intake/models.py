"""The record of an idempotency key, written with its attempt. It stays after its expiry and when the attempt is erased:
without it the same request could run twice. And the identity of the effect that an attempt asks for."""

from django.db import models
from django.db.models import Q

from attempts.lifecycle.models import Attempt
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class RepeatedRefusal(models.Model):
    """How often the same request was refused for the same passing reason: one row, not one attempt each."""

    attempt = models.OneToOneField(
        Attempt, primary_key=True, on_delete=models.CASCADE, related_name="repeated", help_text="The first refusal."
    )
    decision_id = models.UUIDField()
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    subject = models.CharField(max_length=64, help_text="SHA-256 of request, caller, contract, rules and reason.")
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        constraints = [
            # Two that are the first at the same moment: one of them writes, the other is counted on it.
            models.UniqueConstraint(fields=["organization", "subject"], name="refusal_counted_once")
        ]

    def __str__(self) -> str:
        return f"{self.attempt_id} {self.count}"


class IdempotencyRecord(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    scope = models.CharField(max_length=80, help_text="tenant, contract:<slug>, or caller:<id>")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    parts = models.JSONField(help_text="Hash per part of the request, to name what differs in a conflict.")
    attempt = models.ForeignKey(
        Attempt, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    status = models.PositiveSmallIntegerField()
    # The answer to the byte, or the form that gives it from the attempt's row: attempts/intake/services/rows.py.
    body = models.TextField()
    first_used_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    generation = models.PositiveIntegerField(
        default=1, help_text="Counts re-use after the end, where a policy allows it."
    )

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The last protection of a key: it refuses a record that a statement could not see when it began.
            models.UniqueConstraint(
                fields=["organization", "scope", "key", "generation"], name="idempotency_key_once_per_scope"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.fingerprint[:12]}"


class EffectAsk(AppendOnlyModel):
    """An attempt asks for this effect, where its contract asks for the identity of effects. `number` counts those that
    asked for it, whatever their keys."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    effect_sha256 = models.CharField(max_length=64, help_text="Of connector, operation, target and payload hash.")
    number = models.PositiveIntegerField()
    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="effect_ask")
    at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["id"]
        constraints = [
            # The last protection, under the lock: two requests at once are never both the first one.
            models.UniqueConstraint(
                fields=["organization", "effect_sha256", "number"],
                condition=~Q(effect_sha256=""),
                name="effect_asked_once_per_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.effect_sha256[:12]} {self.number}"
