"""The ledger entry. `governance.ledger.services` builds it; it is inserted in the transaction of what it describes."""

from typing import Any

from django.db import models
from django.db.models import Q

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

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.CheckConstraint(
                condition=Q(actor_kind__in=[kind.value for kind in ActorKind]), name="ledger_known_actor_kind"
            ),
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
