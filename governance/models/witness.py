"""What stands outside the database's reach, as the database sees it: answers of witnesses, epochs, verifications."""

from django.db import models
from django.db.models import Q

from governance.models.append_only import AppendOnlyModel
from governance.states import WitnessResult
from reasoncodes.ids import uuid7


class WitnessReceipt(AppendOnlyModel):
    """A witness' answer to one head. `stored` comes once per witness and head; failures as often as it was tried."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    witness = models.CharField(max_length=120)
    size = models.BigIntegerField()
    root = models.BinaryField(max_length=32)
    result = models.CharField(max_length=8, choices=[(result.value, result.value) for result in WitnessResult])
    detail = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(result__in=list(WitnessResult)), name="witness_receipt_known_result"),
            models.UniqueConstraint(
                fields=["witness", "size", "root"], condition=Q(result="stored"), name="witness_receipt_stored_once"
            ),
        ]
        indexes = [models.Index(fields=["witness", "-id"], name="witness_receipt_newest")]

    def __str__(self) -> str:
        return f"{self.witness} {self.size} {self.result}"


class LedgerEpoch(AppendOnlyModel):
    """A new count of leases and heads, begun by a person, mostly after a restore. The first epoch, 1, has no row.

    Of the epoch before, `kept` entries are in the tree; heads up to `lost_to` were signed over what is gone.
    """

    number = models.PositiveIntegerField(primary_key=True)
    kept = models.BigIntegerField()
    lost_to = models.BigIntegerField()
    reason_code = models.CharField(max_length=64)
    actor_ref = models.CharField(max_length=64, blank=True)
    begun_at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.CheckConstraint(condition=Q(number__gte=2), name="ledger_epoch_after_the_first"),
            models.CheckConstraint(condition=Q(kept__gte=0, lost_to__gte=models.F("kept")), name="ledger_epoch_range"),
        ]

    def __str__(self) -> str:
        return f"epoch {self.number}"


class LedgerVerification(models.Model):
    """A check of the whole record that somebody asked for in the console: how far it is, and what it found."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    asked_by_ref = models.CharField(max_length=64)
    asked_at = models.DateTimeField()
    touched_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    found = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"verification of {self.asked_at:%Y-%m-%d %H:%M}"
