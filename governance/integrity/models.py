"""How far the record has been checked, what was found, and which findings two people have accepted."""

from django.db import models
from django.db.models import Q

from governance.integrity.states import FoundBy
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class RecordProgress(models.Model):
    """The one row that says how far the checks are. A check that is lost or done twice changes nothing."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    checked_to = models.BigIntegerField(default=0, help_text="Leaves up to here were compared when they were new.")
    counts = models.JSONField(default=dict, help_text="Rows per table that the items up to there account for.")
    checked_at = models.DateTimeField(null=True)
    walked_to = models.BigIntegerField(default=0, help_text="How far the present round through the record is.")
    round_began_at = models.DateTimeField(null=True)
    round_ended_at = models.DateTimeField(null=True, help_text="When a round last reached the end.")
    full_at = models.DateTimeField(null=True, help_text="When the whole record was last verified in one go.")
    full_result = models.JSONField(default=dict)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="record_progress_is_one_row")]

    def __str__(self) -> str:
        return f"checked to {self.checked_to}"


class RecordFault(AppendOnlyModel):
    """A governed row that is not what the ledger says. Found once, it stays on the record."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    table = models.CharField(max_length=63)
    row = models.CharField(max_length=64, help_text="The id of the row in its table.")
    what = models.CharField(max_length=200)
    found_by = models.CharField(max_length=8, choices=[(door.value, door.value) for door in FoundBy])
    found_at = models.DateTimeField()

    objects = TenantManager(shared=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # The same finding of the same row is one fault, however often it is seen.
            models.UniqueConstraint(fields=["table", "row", "what"], name="record_fault_once"),
            models.CheckConstraint(condition=Q(found_by__in=list(FoundBy)), name="record_fault_known_door"),
        ]

    def __str__(self) -> str:
        return f"{self.table} {self.row}"


class RecordAcceptance(AppendOnlyModel):
    """Two people have looked at a fault and let work go on. The fault stays named; it stops nothing any more."""

    fault = models.OneToOneField(RecordFault, primary_key=True, on_delete=models.PROTECT, related_name="acceptance")
    authority_change = models.UUIDField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.fault_id)
