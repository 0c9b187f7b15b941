"""Tables of contracts: the contract, its ten policy documents, and the decisions of their owners."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from governance.contracts.rules.documents import AREAS
from governance.contracts.states import AdapterName, ContractState, Effect, ReadinessVerdict, RiskTier
from governance.sql.guards import AppendOnlyModel, StateMachineModel
from governance.tenancy.models import SLUG, Organization
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import TenantManager

AREA_CHOICES = [(area.name, area.title) for area in AREAS]


def choices(values: type[ContractState | Effect | RiskTier | AdapterName | ReadinessVerdict]) -> list[tuple[str, str]]:
    return [(value.value, value.value) for value in values]


class Contract(StateMachineModel):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="contracts")
    slug = models.CharField(max_length=63, help_text="Part of the address that callers use.")
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=120)
    effect = models.CharField(
        max_length=12, choices=choices(Effect), default=Effect.ONCE, help_text="`once` is never retried automatically."
    )
    risk_tier = models.CharField(max_length=8, choices=choices(RiskTier), default=RiskTier.HIGH)
    adapter = models.CharField(max_length=12, choices=choices(AdapterName), default=AdapterName.EXTERNAL)
    review_owner = models.CharField(max_length=64, help_text="The reviewer tier that answers for held attempts.")
    policy_slug = models.CharField(max_length=63, help_text="The policy whose active version decides.")
    state = FSMField(
        max_length=12, choices=choices(ContractState), default=ContractState.DRAFT.value, protected=True, editable=False
    )
    closed_reason_code = models.CharField(max_length=64, blank=True, help_text="Why it is suspended or retired.")
    snapshot_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True, blank=True)

    objects = TenantManager()

    class Meta:
        ordering = ["slug", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "slug", "version"], name="contract_version_once"),
            models.CheckConstraint(condition=Q(slug__regex=SLUG), name="contract_slug_format"),
            models.CheckConstraint(condition=Q(version__gte=1), name="contract_version_positive"),
            models.CheckConstraint(condition=Q(state__in=list(ContractState)), name="contract_known_state"),
            models.CheckConstraint(condition=Q(effect__in=list(Effect)), name="contract_known_effect"),
            models.CheckConstraint(condition=Q(risk_tier__in=list(RiskTier)), name="contract_known_risk_tier"),
            models.CheckConstraint(condition=Q(adapter__in=list(AdapterName)), name="contract_known_adapter"),
            models.CheckConstraint(
                condition=~Q(state="open") | ~Q(snapshot_sha256=""), name="contract_open_has_snapshot"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug}/{self.version}"

    @transition(
        field=state, source=[ContractState.DRAFT.value, ContractState.SUSPENDED.value], target=ContractState.OPEN.value
    )
    def open(self) -> None:
        self.closed_reason_code = ""

    @transition(field=state, source=ContractState.OPEN.value, target=ContractState.SUSPENDED.value)
    def suspend(self, *, reason_code: str) -> None:
        self.closed_reason_code = reason_code

    @transition(
        field=state,
        source=[ContractState.DRAFT.value, ContractState.OPEN.value, ContractState.SUSPENDED.value],
        target=ContractState.RETIRED.value,
    )
    def retire(self, *, reason_code: str) -> None:
        self.closed_reason_code = reason_code


class ContractUserObjectPermission(UserObjectPermissionBase):
    content_object = models.ForeignKey(Contract, on_delete=models.CASCADE)


class ContractGroupObjectPermission(GroupObjectPermissionBase):
    content_object = models.ForeignKey(Contract, on_delete=models.CASCADE)


class ContractDocument(models.Model):
    """One of the ten documents. It can change while the contract is a draft; after that a database trigger refuses."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    contract = models.ForeignKey(Contract, on_delete=models.CASCADE, related_name="documents")
    area = models.CharField(max_length=32, choices=AREA_CHOICES)
    document = models.JSONField()
    sha256 = models.CharField(max_length=64)
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    updated_at = models.DateTimeField(auto_now=True)

    objects = TenantManager(path="contract__organization_id")

    class Meta:
        ordering = ["contract_id", "area"]
        constraints = [
            models.UniqueConstraint(fields=["contract", "area"], name="contract_document_once_per_area"),
            models.CheckConstraint(
                condition=Q(area__in=[area.name for area in AREAS]), name="contract_document_known_area"
            ),
        ]

    def __str__(self) -> str:
        return self.area


class ReadinessDecision(AppendOnlyModel):
    """What an owner said about one document of one contract version. The latest one for an area counts."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    contract = models.ForeignKey(Contract, on_delete=models.PROTECT, related_name="readiness_decisions")
    area = models.CharField(max_length=32, choices=AREA_CHOICES)
    verdict = models.CharField(max_length=8, choices=choices(ReadinessVerdict))
    document_sha256 = models.CharField(max_length=64)
    owner_group = models.CharField(max_length=64)
    decided_by_ref = models.CharField(max_length=64, help_text="The person's commitment; see PersonReference.")
    rationale = models.CharField(max_length=500)
    evidence_ref = models.CharField(max_length=200, blank=True)
    carried_from = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    at = models.DateTimeField()

    objects = TenantManager(path="contract__organization_id")

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["contract", "area", "-id"], name="readiness_latest")]
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=list(ReadinessVerdict)), name="readiness_known_verdict"),
            models.CheckConstraint(
                condition=Q(carried_from=None) | Q(verdict="approve"), name="readiness_only_approvals_carry_over"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.area}: {self.verdict}"
