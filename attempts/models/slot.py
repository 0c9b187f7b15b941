"""A place in a cap. Two attempts cannot hold the same one: the unique constraint says so."""

from django.db import models
from django.db.models import Q

from attempts.models.attempt import Attempt
from attempts.states import SlotScope
from governance.models import Organization
from reasoncodes.ids import uuid7
from reasoncodes.tenancy import TenantManager


class Slot(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+", db_index=False)
    scope = models.CharField(max_length=10)
    subject = models.CharField(max_length=64, help_text="SHA-256 of what is capped.")
    number = models.PositiveIntegerField()
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="slots", db_constraint=True)

    objects = TenantManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scope", "subject", "number"], name="slot_held_once"),
            models.CheckConstraint(condition=Q(scope__in=list(SlotScope)), name="slot_known_scope"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.number}"
