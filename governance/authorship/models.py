"""The table of authors: every person who wrote to something that another person has to approve, or started something
that another person has to end. Also everybody who ever was responsible for a service account: a trigger adds them."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from governance.authorship.states import WorkKind
from governance.sql.guards import AppendOnlyModel
from governance.tenancy.models import Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class Authorship(AppendOnlyModel):
    """One person wrote to one thing. Only rows of the highest `lineage` count: a lineage begins with the first change
    of approved content. `subject_id` is no foreign key, because a discarded draft keeps its authors."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=20, choices=[(kind.value, kind.value) for kind in WorkKind])
    subject_id = models.UUIDField()
    lineage = models.PositiveIntegerField(default=1)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    through = models.ForeignKey(
        "governance.ServiceAccount",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The service whose key was used. Its responsible person counts.",
    )
    at = models.DateTimeField()

    objects = TenantManager(shared=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject_id", "lineage", "person"], name="authorship_once"),
            models.CheckConstraint(condition=Q(kind__in=list(WorkKind)), name="authorship_known_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"
