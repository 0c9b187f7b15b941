"""The intent before an adapter's call and the receipt after it. Both are append-only."""

from django.db import models
from django.db.models import Q

from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from governance.enforcement.models import EnforcementDecision
from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class DispatchIntent(AppendOnlyModel):
    """Committed before the adapter is called. Without an intent nothing was sent. At most one for effect `once`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="intents", db_index=False)
    decision = models.ForeignKey(
        EnforcementDecision,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The decision it was sent under.",
    )
    number = models.PositiveSmallIntegerField(help_text="1 for the first call of this attempt.")
    fence = models.PositiveIntegerField(help_text="The lease token under which it was written.")
    once = models.BooleanField()
    adapter = models.CharField(max_length=12)
    effect_key = models.CharField(max_length=200, help_text="The idempotency key that the receiver gets.")
    action_digest = models.CharField(max_length=64)
    executor_ref = models.CharField(max_length=64)
    at = models.DateTimeField()

    objects = TenantManager(path="attempt__organization_id")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["attempt", "number"], name="intent_number_once"),
            # The database itself refuses a second call of an effect that must happen once.
            models.UniqueConstraint(fields=["attempt"], condition=Q(once=True), name="intent_at_most_one_for_once"),
        ]

    def __str__(self) -> str:
        return f"{self.adapter} call {self.number}"


class Receipt(AppendOnlyModel):
    """The outcome of one execution. A late one, under a lost lease, is kept as evidence and changes nothing."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    attempt = models.ForeignKey(Attempt, on_delete=models.PROTECT, related_name="receipts", db_index=False)
    intent = models.ForeignKey(DispatchIntent, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    outcome = models.CharField(max_length=8)
    late = models.BooleanField(default=False)
    category = models.CharField(max_length=24, blank=True)
    retryable = models.BooleanField(default=False)
    reason_code = models.CharField(max_length=64, blank=True)
    response_metadata = models.JSONField(default=dict)
    reversible = models.BooleanField(default=False)
    reversal_hint = models.CharField(max_length=200, blank=True)
    cost = models.JSONField(null=True, help_text="provider, model, units, amount (as text), currency")
    at = models.DateTimeField()

    objects = TenantManager(path="attempt__organization_id")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["attempt", "id"], name="receipt_by_attempt")]
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=list(ReceiptOutcome)), name="receipt_known_outcome"),
            models.UniqueConstraint(
                fields=["attempt"], condition=Q(outcome="success", late=False), name="receipt_one_success"
            ),
            models.CheckConstraint(
                condition=Q(outcome="success") | ~Q(reason_code=""), name="receipt_failure_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return self.outcome
