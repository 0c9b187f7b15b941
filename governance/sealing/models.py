"""Tables of sealing: the tree (leaves, complete nodes), signed heads, public keys and their handovers, receipts of
witnesses, epochs, checks of the record, and the read audit. Private keys are not in the database."""

from django.db import models
from django.db.models import Q

from governance.ledger.models import LedgerEntry
from governance.sealing.states import ReadDoor, WitnessResult
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class LedgerLeaf(AppendOnlyModel):
    """The position of an entry in the tree. It does not change."""

    position = models.BigIntegerField(primary_key=True)
    # No foreign key in the database. `verify_ledger` names leaves whose entry is gone.
    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="leaf", db_constraint=False)
    hash = models.BinaryField(max_length=32)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return str(self.position)


class LedgerNode(AppendOnlyModel):
    """The root of a complete subtree of 2^level leaves (level 1 and up). It does not change when the tree grows."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.PositiveSmallIntegerField()
    index = models.BigIntegerField()
    hash = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return f"{self.level}/{self.index}"


class LedgerKey(AppendOnlyModel):
    """A public key that has signed heads. The private half is not in the database."""

    id = models.CharField(primary_key=True, max_length=8)
    name = models.CharField(max_length=120)
    public_key = models.BinaryField(max_length=32)
    first_used_at = models.DateTimeField()

    class Meta:
        ordering = ["first_used_at"]

    def __str__(self) -> str:
        return f"{self.name} {self.id}"


class LedgerKeyHandover(AppendOnlyModel):
    """The key that may seal after `old_key`, named by a person. `signature` is the old key's over that statement; empty
    if the old key was lost. Counted, not timed: a wrong clock must not change which one is the newest."""

    number = models.PositiveIntegerField(primary_key=True)
    old_key = models.ForeignKey(LedgerKey, on_delete=models.PROTECT, related_name="+")
    new_key = models.CharField(max_length=8, db_index=True)
    new_verifier = models.TextField(help_text="name+id+base64, as C2SP writes it.")
    size = models.BigIntegerField(help_text="Entries under the newest head when it was made.")
    signature = models.BinaryField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.CheckConstraint(condition=~Q(new_key=models.F("old_key")), name="ledger_key_hands_over_to_another")
        ]

    def __str__(self) -> str:
        return f"{self.old_key_id} to {self.new_key}"


class LedgerCheckpoint(AppendOnlyModel):
    """A signed head. `frontier` and the cursor say where the next sealing continues."""

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


class WitnessReceipt(AppendOnlyModel):
    """A witness' answer to one head: `stored` once per witness and head, a failure for every failed try."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    witness = models.CharField(max_length=120)
    size = models.BigIntegerField()
    root = models.BinaryField(max_length=32)
    result = models.CharField(max_length=8, choices=[(result.value, result.value) for result in WitnessResult])
    detail = models.CharField(max_length=64, blank=True)
    # With a default of the database: processes of the version before insert receipts without it during an upgrade.
    cosignature = models.TextField(blank=True, db_default="", help_text="The C2SP line, of a witness that cosigns.")
    at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=Q(result__in=list(WitnessResult)), name="witness_receipt_known_result"),
            models.CheckConstraint(
                condition=Q(result="stored") | Q(cosignature=""), name="witness_receipt_cosigned_if_stored"
            ),
            models.UniqueConstraint(
                fields=["witness", "size", "root"], condition=Q(result="stored"), name="witness_receipt_stored_once"
            ),
        ]
        indexes = [models.Index(fields=["witness", "-id"], name="witness_receipt_newest")]

    def __str__(self) -> str:
        return f"{self.witness} {self.size} {self.result}"


class LedgerEpoch(AppendOnlyModel):
    """An epoch that a person began, usually after a restore. The first epoch, 1, has no row.

    `kept` entries of the epoch before are in the tree; heads up to size `lost_to` cover entries that are lost.
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
    """A check of the whole record, started in the console: its progress and its result."""

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


class ReadAccess(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    subject_kind = models.CharField(max_length=32)
    subject_id = models.UUIDField()
    door = models.CharField(max_length=8, choices=[(door.value, door.value) for door in ReadDoor])
    purpose = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField()

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "read accesses"
        constraints = [models.CheckConstraint(condition=Q(door__in=list(ReadDoor)), name="read_access_known_door")]
        indexes = [
            models.Index(fields=["organization", "-id"], name="read_access_newest"),
            models.Index(fields=["subject_id", "actor_ref", "-at"], name="read_access_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject_id}"
