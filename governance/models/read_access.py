"""Who opened what, and what for. Its own stream, apart from the ledger: reading changes nothing that is governed."""

from django.db import models
from django.db.models import Q

from governance.models.append_only import AppendOnlyModel
from governance.models.organization import Organization
from governance.states import ReadDoor
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


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
