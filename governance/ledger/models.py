"""The ledger entry. `governance.ledger.services` builds it; it is inserted in the transaction of what it describes."""

from typing import Any

from django.db import models
from django.db.models import Q

from governance.ledger.rules.entry import FORMAT, entries_joined
from governance.ledger.rules.moves import Move, moves_of
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.actors import ActorKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class LedgerEntry(AppendOnlyModel):
    # An entry that is inserted by itself would survive a rollback of what it describes; `insert_together` refuses that.
    ONLY_IN_A_TRANSACTION = True

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    action = models.CharField(max_length=64)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    actor_kind = models.CharField(max_length=8)
    actor_ref = models.CharField(max_length=64, blank=True)
    reason_code = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)
    payload: "models.JSONField[Any, Any]" = models.JSONField(
        null=True, help_text="Empty once it was erased by order; its hash stays."
    )
    nonce = models.BinaryField(max_length=16, null=True)
    payload_sha256 = models.BinaryField(max_length=32)
    sha256 = models.BinaryField(max_length=32)
    at = models.DateTimeField()
    # Two defaults: rows from before formats had numbers are of format 1, new ones are of the newest.
    format = models.PositiveSmallIntegerField(default=FORMAT, db_default=1)
    earlier: "models.JSONField[Any, Any]" = models.JSONField(
        null=True, help_text="The moves before the action, in order. Their facts are in the payload."
    )

    objects = TenantManager()
    # Called by `insert_together` with the entries of one statement.
    before_insert = staticmethod(entries_joined)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.CheckConstraint(
                condition=Q(actor_kind__in=[kind.value for kind in ActorKind]), name="ledger_known_actor_kind"
            ),
            # The hash of format 1 does not cover them.
            models.CheckConstraint(condition=Q(earlier__isnull=True) | Q(format__gt=1), name="ledger_moves_are_hashed"),
        ]
        indexes = [
            models.Index(fields=["organization", "id"], name="ledger_by_organization"),
            models.Index(fields=["subject_id", "id"], name="ledger_by_subject"),
            models.Index(
                fields=["organization", "reason_code"],
                condition=~Q(reason_code=""),
                name="ledger_by_reason_code",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.id}"

    @property
    def moves(self) -> list[Move]:
        """What the entry tells, in order."""
        return moves_of(action=self.action, reason_code=self.reason_code, earlier=self.earlier, payload=self.payload)
