"""The table of regional profiles. New content is a new row; decisions name the profile they used by its hash."""

from django.db import models

from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7


class RegionProfile(AppendOnlyModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    code = models.CharField(max_length=8)
    name = models.CharField(max_length=80)
    version = models.CharField(max_length=40)
    sha256 = models.CharField(max_length=64, unique=True)
    document = models.JSONField()
    disclaimer = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["code", "-id"]
        indexes = [models.Index(fields=["code", "-id"], name="region_profile_latest")]

    def __str__(self) -> str:
        return f"{self.code} {self.version}"
