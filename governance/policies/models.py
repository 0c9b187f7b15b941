"""The table of policy versions. A policy is an ordered list of rules, and the first one that matches decides. The
active version of a slug decides for the contracts that name it."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from governance.policies.states import PolicyState
from governance.sql.guards import StateMachineModel
from governance.tenancy.models import SLUG, Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager


class Policy(StateMachineModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="policies")
    slug = models.CharField(max_length=63)
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=120)
    rules = models.JSONField(default=list)
    state = FSMField(
        max_length=12,
        choices=[(state.value, state.value) for state in PolicyState],
        default=PolicyState.DRAFT.value,
        protected=True,
        editable=False,
    )
    snapshot_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["slug", "-version"]
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug", "version"], name="policy_version_once"),
            models.UniqueConstraint(
                fields=["organization", "slug"], condition=Q(state="active"), name="policy_one_active_version"
            ),
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="policy_slug_format"),
            models.CheckConstraint(condition=Q(state__in=list(PolicyState)), name="policy_known_state"),
            models.CheckConstraint(
                condition=~Q(state="active") | ~Q(snapshot_sha256=""), name="policy_active_has_snapshot"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug}/{self.version}"

    @transition(field=state, source=PolicyState.DRAFT.value, target=PolicyState.ACTIVE.value)
    def publish(self, *, snapshot_sha256: str) -> None:
        self.snapshot_sha256 = snapshot_sha256

    @transition(
        field=state, source=[PolicyState.DRAFT.value, PolicyState.ACTIVE.value], target=PolicyState.ARCHIVED.value
    )
    def archive(self) -> None:
        """The snapshot is kept, so that decisions of this version can be computed again."""
