"""The sealed tree over the ledger: leaves, complete nodes, signed heads, and the public keys that signed them."""

from django.db import models

from governance.models.append_only import AppendOnlyModel
from governance.models.ledger_entry import LedgerEntry
from reasoncodes.ids import uuid7


class LedgerLeaf(AppendOnlyModel):
    """Where an entry stands in the tree, for ever."""

    position = models.BigIntegerField(primary_key=True)
    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="leaf", db_constraint=False)
    hash = models.BinaryField(max_length=32)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return str(self.position)


class LedgerNode(AppendOnlyModel):
    """The root of a complete subtree of 2^level leaves (level 1 and up). It never changes, so it is stored once."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.PositiveSmallIntegerField()
    index = models.BigIntegerField()
    hash = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return f"{self.level}/{self.index}"


class LedgerKey(AppendOnlyModel):
    """A public key that has signed heads. The private half is never in the database."""

    id = models.CharField(primary_key=True, max_length=8)
    name = models.CharField(max_length=120)
    public_key = models.BinaryField(max_length=32)
    first_used_at = models.DateTimeField()

    class Meta:
        ordering = ["first_used_at"]

    def __str__(self) -> str:
        return f"{self.name} {self.id}"


class LedgerCheckpoint(AppendOnlyModel):
    """A signed head. `frontier` and the cursor are where the next sealing goes on."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    size = models.BigIntegerField(unique=True)
    root = models.BinaryField(max_length=32)
    text = models.TextField(help_text="C2SP tlog-checkpoint, signed.")
    key = models.ForeignKey(LedgerKey, on_delete=models.PROTECT, related_name="+", db_index=False)
    frontier = models.BinaryField()
    cursor_txid = models.BigIntegerField()
    cursor_id = models.UUIDField()
    cluster = models.BigIntegerField(help_text="The database cluster's identifier; another one counts anew.")
    at = models.DateTimeField()

    class Meta:
        ordering = ["-size"]
        indexes = [models.Index(fields=["key", "size"], name="checkpoint_key_sizes")]

    def __str__(self) -> str:
        return f"{self.size} entries"
