"""Bound rows: which rows each ledger entry covers, in which shape their tables' rows are written as text; and the
manifests of guards."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7


class BoundRows(AppendOnlyModel):
    """The rows that one transaction wrote, bound to its first ledger entry. The database writes it at the commit; the
    leaf of the entry covers `rows`. `salts` can be destroyed by an erasure."""

    pk = models.CompositePrimaryKey("entry_id", "part")
    # No foreign key: every transaction would pay for its check. `verify_record` names parts without an entry.
    entry_id = models.UUIDField()
    part = models.PositiveIntegerField()
    rows = models.BinaryField()
    salts = models.BinaryField(null=True)

    class Meta:
        verbose_name_plural = "bound rows"

    def __str__(self) -> str:
        return f"{self.entry_id} {self.part}"


class RowShape(AppendOnlyModel):
    """The columns whose values are a row's image. A table whose columns change gets the next shape; older digests keep
    theirs."""

    pk = models.CompositePrimaryKey("number", "shape")
    number = models.PositiveSmallIntegerField(help_text="Of the table; see governance/record/rules/tables.py.")
    shape = models.PositiveSmallIntegerField()
    table = models.CharField(max_length=63)
    key = models.CharField(max_length=63, help_text="The column of the primary key.")
    key_kind = models.CharField(max_length=4)
    columns = ArrayField(models.CharField(max_length=63))
    salted = models.BooleanField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(key_kind__in=["uuid", "int", "text"]), name="row_shape_known_key"),
            models.CheckConstraint(condition=Q(shape__lt=32, number__lt=1024), name="row_shape_fits_its_bits"),
        ]

    def __str__(self) -> str:
        return f"{self.table} {self.shape}"


class GuardManifest(AppendOnlyModel):
    """One adopted manifest. Its ledger entry has the row's id as subject and the digest in its payload."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    sha256 = models.CharField(max_length=64)
    content = models.TextField(help_text="Canonical JSON, as it was hashed.")
    adopted_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.sha256[:12]
