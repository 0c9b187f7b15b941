"""The manifests of guards: what protected the record in the database, each time that it changed."""

from django.db import models

from governance.sql.guards import AppendOnlyModel
from reasoncodes.base.ids import uuid7


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
