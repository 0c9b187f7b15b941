"""Definitions and templates, and the revisions of their documents. Runs are in `workflows.runs`."""

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from governance.contracts.models import Contract
from governance.sql.guards import AppendOnlyModel, StateMachineModel
from governance.tenancy.models import SLUG, Organization, Product
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager
from workflows.definitions.states import DefinitionStatus, Mode

S = DefinitionStatus


class WorkflowDefinition(StateMachineModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        Organization, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    product = models.ForeignKey(
        Product, null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    slug = models.CharField(max_length=63)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField(default=1)
    is_template = models.BooleanField(default=False)
    state = FSMField(
        max_length=12,
        choices=[(s.value, s.value) for s in S],
        default=S.DRAFT.value,
        protected=True,
        editable=False,
    )
    default_mode = models.CharField(max_length=16, choices=[(m.value, m.value) for m in Mode], default=Mode.ACTIVE)
    definition = models.JSONField(default=dict)
    takes_cases = models.BooleanField(
        default=True, editable=False, help_text="Whether case.created starts it; if not, only run.requested does."
    )
    workflow_timeout_seconds = models.PositiveIntegerField()
    contract = models.OneToOneField(Contract, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    cloned_from = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    snapshot_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    created_by_ref = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager(shared=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "product", "version"],
                condition=Q(is_template=False),
                nulls_distinct=False,
                name="definition_version_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "product"],
                condition=Q(state="active", is_template=False, takes_cases=True),
                nulls_distinct=False,
                name="definition_one_active",
            ),
            models.UniqueConstraint(
                fields=["organization", "slug"],
                condition=Q(state="active", is_template=False),
                name="definition_one_active_per_slug",
            ),
            models.UniqueConstraint(fields=["slug"], condition=Q(is_template=True), name="template_slug_once"),
            models.CheckConstraint(condition=Q(state__in=list(S)), name="definition_known_status"),
            models.CheckConstraint(condition=Q(default_mode__in=list(Mode)), name="definition_known_mode"),
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="definition_slug_format"),
            models.CheckConstraint(
                condition=Q(is_template=True, organization=None) | Q(is_template=False, organization__isnull=False),
                name="definition_template_belongs_to_nobody",
            ),
            models.CheckConstraint(
                condition=~Q(state="active") | ~Q(snapshot_sha256=""), name="definition_active_has_snapshot"
            ),
        ]
        indexes = [
            models.Index(fields=["organization", "product", "state"], name="definition_by_product"),
            models.Index(fields=["organization", "id"], name="definition_by_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @transition(field=state, source=S.DRAFT.value, target=S.ACTIVE.value)
    def publish(self) -> None:
        """The service has set contract and snapshot before."""

    @transition(field=state, source=S.ARCHIVED.value, target=S.ACTIVE.value)
    def restore(self) -> None:
        """The version that replaced it was unpublished."""

    @transition(field=state, source=[S.DRAFT.value, S.ACTIVE.value], target=S.ARCHIVED.value)
    def archive(self) -> None:
        """Runs continue: they follow their frozen copy."""


class WorkflowDefinitionRevision(AppendOnlyModel):
    """One change of a definition: what, by whom and why."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow_definition = models.ForeignKey(
        WorkflowDefinition, on_delete=models.PROTECT, related_name="revisions", db_index=False
    )
    number = models.PositiveIntegerField()
    changed_by_kind = models.CharField(max_length=8)
    changed_by_ref = models.CharField(max_length=64, blank=True)
    diff = models.JSONField()
    sha256 = models.CharField(max_length=64, help_text="Of the document after the change.")
    reason = models.CharField(max_length=280, blank=True)
    created_at = models.DateTimeField()

    objects = TenantManager(path="workflow_definition__organization_id", shared=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["workflow_definition", "number"], name="revision_number_once"),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"
