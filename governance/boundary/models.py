"""The table of notes: short texts that people write when they do something."""

from django.db import models

from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class Note(models.Model):
    """At most 280 characters that the boundary's detectors have checked. The ledger has only the salted hash, so that
    the text can be erased."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, null=True, on_delete=models.PROTECT, related_name="+")
    text = models.CharField(max_length=280)
    salt = models.BinaryField(max_length=16)
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantManager(shared=True)

    def __str__(self) -> str:
        return self.text
