"""Orders to erase, item by item, and which payloads of the ledger they erased."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.models.append_only import AppendOnlyModel
from governance.models.ledger_entry import LedgerEntry
from governance.models.organization import Organization
from governance.models.shutdown import Note
from governance.states import ErasureKind, ItemState
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class ErasureOrder(models.Model):
    """A person's order; worked off in the background, item by item. The clock never makes one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8)
    reason_code = models.CharField(max_length=64)
    note = models.ForeignKey(Note, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    ordered_by = models.UUIDField()
    ordered_by_ref = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    resume_at = models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died.")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=list(ErasureKind)), name="erasure_known_kind"),
            models.CheckConstraint(condition=~Q(reason_code=""), name="erasure_has_reason"),
        ]
        indexes = [models.Index(fields=["resume_at"], condition=Q(finished_at=None), name="erasure_unfinished")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class ErasureItem(models.Model):
    """One attempt, run or person of an order. The function that erases it fills `related` and `refs`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    order = models.ForeignKey(ErasureOrder, on_delete=models.PROTECT, related_name="items", db_index=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=20)
    subject_id = models.UUIDField()
    state = models.CharField(max_length=8, default=ItemState.WAITING.value)
    problem = models.CharField(max_length=64, blank=True, help_text="The reason code of a refusal.")
    not_before = models.DateTimeField(null=True, help_text="End of retention where only the application knows it.")
    contract = models.CharField(max_length=63, blank=True)
    refs = ArrayField(models.CharField(max_length=200), default=list, help_text="Emptied when it is done.")
    related = ArrayField(models.UUIDField(), default=list, help_text="Subjects of the ledger entries that it erases.")
    entries = models.PositiveIntegerField(default=0, help_text="Ledger payloads erased.")
    finished_at = models.DateTimeField(null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["order", "kind", "subject_id"], name="erasure_item_once"),
            models.CheckConstraint(condition=Q(state__in=list(ItemState)), name="erasure_item_known_state"),
            models.CheckConstraint(
                condition=~Q(state="refused") | ~Q(problem=""), name="erasure_item_refusal_has_reason"
            ),
        ]
        indexes = [
            models.Index(fields=["order", "id"], condition=Q(state="waiting"), name="erasure_item_waiting"),
            models.Index(fields=["subject_id"], name="erasure_item_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class ErasedPayload(AppendOnlyModel):
    """That a ledger entry's payload was erased, and by which item. Written by the function that erases."""

    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="erased", primary_key=True)
    item = models.ForeignKey(ErasureItem, on_delete=models.PROTECT, related_name="payloads")

    objects = TenantManager(path="item__organization_id")

    class Meta:
        ordering = ["entry_id"]

    def __str__(self) -> str:
        return str(self.entry_id)
