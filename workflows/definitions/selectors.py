"""Reads definitions, templates, their history and their contracts; locks definitions and organizations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, F, Max, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, NullIf

from governance.contracts.models import Contract
from governance.contracts.rules.readiness import APPROVED, AreaStatus
from governance.contracts.selectors import readiness_board
from governance.contracts.states import ContractState
from governance.people.models import PersonReference
from governance.tenancy.models import Organization, Product
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound, WrongState
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.rules.diff import patched
from workflows.definitions.rules.starting import takes_cases
from workflows.definitions.states import DefinitionStatus
from workflows.runs.models import WorkflowInstance
from workflows.runs.states import ENDED

# Counting stops here: a page that says "more than" must not read the whole table.
COUNT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class ContractStanding:
    """A definition's contract, and the areas whose owners have not approved it as it is."""

    contract: Contract
    missing: tuple[AreaStatus, ...]


def definition_list(
    *, product_id: UUID | None = None, status: str | None = None, slug: str | None = None
) -> QuerySet[WorkflowDefinition]:
    """Of the organizations in scope, without templates and without the documents themselves."""
    asked = {"product_id": product_id, "state": status, "slug": slug}
    rows = WorkflowDefinition.objects.filter(is_template=False).select_related("contract").defer("definition")
    return rows.filter(**{name: value for name, value in asked.items() if value is not None})


def template_list() -> QuerySet[WorkflowDefinition]:
    return WorkflowDefinition.objects.filter(is_template=True).defer("definition")


def definition_get(*, definition_id: UUID) -> WorkflowDefinition:
    """Also templates, which belong to no organization."""
    return tenant_get(WorkflowDefinition, definition_id)


def definition_home(*, definition_id: UUID) -> UUID | None:
    """The organization that it belongs to; None for a template."""
    return definition_get(definition_id=definition_id).organization_id


def definition_organization(*, definition_id: UUID) -> Organization:
    """The organization in which it could be published. A template belongs to none."""
    found = definition_get(definition_id=definition_id)
    if found.organization is None:
        raise WrongState("This is a template. Clone it, and change the clone.")
    return found.organization


def template_get(*, template_id: UUID) -> WorkflowDefinition:
    template = WorkflowDefinition.objects.filter(id=template_id, is_template=True).first()
    if template is None:
        raise NotFound
    return template


def organization_lock(*, actor: Actor, organization_id: UUID | None) -> Organization:
    """The organization's row, locked."""
    # Lock order: organization, then definition. Versions are numbered and the active definition is chosen per
    # organization; without the lock two publications could choose the same version.
    rows = Organization.objects.select_for_update(no_key=True)
    row = rows.filter(id=organization_id).first() if organization_id else None
    if row is None or not actor.may_act_in(organization_id):
        raise NotFound
    return row


def definition_lock(*, actor: Actor, definition_id: UUID) -> WorkflowDefinition:
    """The definition, locked after its organization. Templates are refused: only the program changes them."""
    found = definition_get(definition_id=definition_id)
    if found.is_template:
        raise WrongState("This is a template. Clone it, and change the clone.")
    organization_lock(actor=actor, organization_id=found.organization_id)
    return tenant_get(WorkflowDefinition, definition_id, lock=True)


def product_get(*, organization_id: UUID, product_id: UUID | None) -> Product | None:
    """The product; None stands for the whole organization."""
    if product_id is None:
        return None
    product = tenant_get(Product, product_id)
    if product.organization_id != organization_id:
        raise NotFound
    return product


def definitions_replaced(*, definition: WorkflowDefinition) -> list[WorkflowDefinition]:
    """The active definitions that its publication archives: the one with its slug, and if it takes cases, the one that
    took those of exactly this product (or of the whole organization) until now. The first is what it is compared with.
    For the definition that a new run follows, see `definition_for`."""
    active = _own(organization_id=definition.organization_id, state=DefinitionStatus.ACTIVE)
    same_slug = Q(slug=definition.slug)
    of_product: dict[str, Any] = {"product_id": definition.product_id}
    same_cases = Q(takes_cases=True, **of_product) if takes_cases(definition.definition) else Q(pk=None)
    return sorted(active.filter(same_slug | same_cases), key=lambda row: row.slug != definition.slug)


def definition_before(*, definition: WorkflowDefinition) -> WorkflowDefinition | None:
    """The version with its slug that was published before it and can take new runs: its contract is still open."""
    rows = _own(
        organization_id=definition.organization_id,
        slug=definition.slug,
        state=DefinitionStatus.ARCHIVED,
        version__lt=definition.version,
        contract__state=ContractState.OPEN,
    )
    of_product: dict[str, Any] = {"product_id": definition.product_id}
    return rows.filter(**of_product).order_by("-version").first()


def definition_active(*, definition: WorkflowDefinition) -> WorkflowDefinition | None:
    """The active definition that this one would replace, if there is one."""
    return next(iter(definitions_replaced(definition=definition)), None)


def next_version(*, organization_id: UUID, product_id: UUID | None) -> int:
    """Call it under the organization's lock."""
    rows = _own(organization_id=organization_id, product_id=product_id)
    latest: int | None = rows.aggregate(latest=Max("version"))["latest"]
    return (latest or 0) + 1


def slug_is_anothers(*, organization_id: UUID | None, product_id: UUID | None, slug: str) -> bool:
    """Whether another product's definitions have the slug. Approvals carry over along a slug, so products must not
    share one."""
    of_product: dict[str, Any] = {"product_id": product_id}
    return _own(organization_id=organization_id, slug=slug).exclude(**of_product).exists()


def _own(**where: Any) -> QuerySet[WorkflowDefinition]:
    return WorkflowDefinition.objects.filter(is_template=False, **where)


def definition_siblings(*, definition: WorkflowDefinition) -> QuerySet[WorkflowDefinition]:
    """All versions for the same organization and product, newest first."""
    if definition.is_template:
        return WorkflowDefinition.objects.filter(id=definition.id)
    rows = _own(organization_id=definition.organization_id, product_id=definition.product_id)
    return rows.order_by("-version")


def revision_list(*, definition_id: UUID) -> QuerySet[WorkflowDefinitionRevision]:
    """Newest first. `changed_by_name`: the username, a service's id, `erased`, or who the program acts as."""
    definition_get(definition_id=definition_id)
    person = PersonReference.objects.filter(commitment=OuterRef("changed_by_ref")).values("user__username")[:1]
    nobody = Case(When(changed_by_kind="person", then=Value("erased")), default=F("changed_by_kind"))
    service = NullIf(F("changed_by_ref"), Value(""))
    named = Case(When(changed_by_kind="service", then=service), default=Subquery(person))
    rows = WorkflowDefinitionRevision.objects.filter(workflow_definition_id=definition_id)
    return rows.annotate(changed_by_name=Coalesce(named, nobody)).order_by("-number")


def document_at(*, definition: WorkflowDefinition, number: int) -> dict[str, Any] | None:
    """The document after that revision, rebuilt from the stored changes; None if there is no such revision."""
    rows = list(definition.revisions.filter(number__lte=number).order_by("number"))
    if not rows or rows[-1].number != number:
        return None
    document: dict[str, Any] = {}
    for row in rows:
        document = patched(document, row.diff["definition"])
    return document


def runs_going(*, definition: WorkflowDefinition) -> int:
    """Instances that follow it and have not ended, counted up to COUNT_LIMIT."""
    rows = WorkflowInstance.objects.filter(definition=definition).exclude(state__in=ENDED)
    return rows.order_by()[:COUNT_LIMIT].count()


def revision_latest(*, definition: WorkflowDefinition) -> int:
    latest: int | None = definition.revisions.aggregate(latest=Max("number"))["latest"]
    return latest or 0


def contract_latest(*, organization_id: UUID, slug: str) -> Contract | None:
    return Contract.objects.filter(organization_id=organization_id, slug=slug).order_by("-version").first()


def contract_definition(*, contract: Contract) -> WorkflowDefinition | None:
    """The definition that was published with this version of the contract."""
    return WorkflowDefinition.objects.filter(contract=contract).first()


def slug_was_published(*, organization_id: UUID | None, slug: str) -> bool:
    return _own(organization_id=organization_id, slug=slug).exclude(contract=None).exists()


def missing_areas(*, contract: Contract) -> tuple[AreaStatus, ...]:
    return tuple(row for row in readiness_board(contract=contract) if row.status != APPROVED)


def contract_standing(*, definition: WorkflowDefinition) -> ContractStanding | None:
    if definition.contract is None:
        return None
    return ContractStanding(definition.contract, missing_areas(contract=definition.contract))


def areas_named(rows: Sequence[AreaStatus]) -> list[str]:
    return [row.area for row in rows]
