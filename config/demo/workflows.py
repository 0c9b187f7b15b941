"""The demo's workflows: each template cloned and published for a product of its own, its contract approved and open."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from governance.contracts.rules.documents import AREAS
from governance.contracts.selectors import contract_documents
from governance.contracts.services.contracts import contract_change, contract_open
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import ReadinessVerdict
from governance.people.models import User
from governance.tenancy.models import Organization, Product
from governance.tenancy.services import product_create
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import NAMES
from workflows.definitions.selectors import template_list
from workflows.definitions.services.create import definition_clone
from workflows.definitions.services.publish import Published, definition_publish

EXAMPLE = "ai_with_confidence_escalation"
PER_MINUTE = 1_000_000


def definitions_ensure(*, organization: Organization, at: datetime) -> dict[str, dict[str, Any]]:
    """By template name. Needs one query if all of them exist."""
    wanted = {name: name.replace("_", "-") for name in NAMES}
    rows = WorkflowDefinition.objects.filter(organization=organization, product__slug__in=wanted.values())
    found = {
        row.product.slug: row
        for row in rows.exclude(contract=None).select_related("product").defer("definition").order_by("version")
        if row.product is not None
    }
    missing = [slug for slug in wanted.values() if slug not in found]
    people = demo_people(organization) if missing else {}
    found |= {slug: _make(organization, slug, people, at=at) for slug in missing}
    return {
        name: {"id": str(found[slug].id), "slug": found[slug].slug, "version": found[slug].version}
        for name, slug in wanted.items()
    }


def event_example(*, organization: Organization, at: datetime) -> dict[str, Any]:
    """The smallest event that starts a case of the example's product; a new case each time."""
    product = Product.objects.get(organization=organization, slug=EXAMPLE.replace("_", "-"))
    return {
        "event_id": str(uuid4()),
        "event_type": "case.created",
        "schema_version": "v1",
        "occurred_at": at.isoformat(),
        "correlation_id": str(uuid4()),
        "case_id": str(uuid4()),
        "org_id": str(organization.id),
        "product_id": str(product.id),
        "payload": {"patient_id": "pat-0001"},
    }


def _make(organization: Organization, slug: str, people: dict[str, Actor], *, at: datetime) -> WorkflowDefinition:
    """Written and published by the operator, approved by the ten areas' owners, opened by the operator."""
    operator = people["operator"]
    template = template_list().get(slug=slug)
    product = Product.objects.filter(organization=organization, slug=slug).first() or product_create(
        actor=SYSTEM, at=at, organization=organization, slug=slug, name=template.name
    )
    draft = definition_clone(
        actor=operator, at=at, source_id=template.id, organization=organization, slug=slug, product_id=product.id
    )
    definition_open(definition_publish(actor=operator, at=at, definition_id=draft.id), people, at=at)
    return draft


def definition_open(published: Published, people: dict[str, Actor], *, at: datetime) -> None:
    contract, operator = published.contract, people["operator"]
    documents = {"throttles_and_misuse": wide(contract_documents(contract=contract)["throttles_and_misuse"])}
    contract_change(actor=operator, at=at, contract_id=contract.id, documents=documents)
    for area in AREAS:
        readiness_decide(
            actor=people[f"owner_{area.owner_group.replace('-', '_')}"],
            at=at,
            contract_id=contract.id,
            area=area.name,
            verdict=ReadinessVerdict.APPROVE,
            rationale="Approved for the demo",
        )
    contract_open(actor=operator, at=at, contract_id=contract.id)


def wide(document: dict[str, Any]) -> dict[str, Any]:
    """Limits that are wide enough for trying things and for a load test."""
    limits = [limit | {"limit": PER_MINUTE} for limit in document["limits"]]
    return document | {"limits": limits, "misuse": document["misuse"] | {"strikes": 100, "window_seconds": 60}}


def demo_people(organization: Organization) -> dict[str, Actor]:
    rows = User.objects.filter(groups__role_group__organization=organization).distinct()
    where = frozenset({organization.id})
    return {name: Actor(ActorKind.PERSON, id_, where) for name, id_ in rows.values_list("username", "id")}
