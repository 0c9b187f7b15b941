"""The demo's workflow that is not clinical: a refund, asked for by `run.requested`, its contract approved and open."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from config.demo.workflows import definition_open, demo_people
from governance.tenancy.models import Organization, Product
from governance.tenancy.services import product_create
from reasoncodes.base.actors import SYSTEM
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.services.create import definition_create
from workflows.definitions.services.publish import definition_publish

SLUG = "refund"
DOCUMENT = Path(__file__).with_name("refund.definition.json")


def refund_ensure(*, organization: Organization, at: datetime) -> dict[str, Any]:
    """Its modules and its reviewer tier must be there before."""
    rows = WorkflowDefinition.objects.filter(organization=organization, slug=SLUG).exclude(contract=None)
    found = rows.defer("definition").order_by("version").last() or _make(organization, at=at)
    return {"id": str(found.id), "slug": found.slug, "version": found.version}


def run_example(*, organization: Organization, at: datetime) -> dict[str, Any]:
    """The smallest request of a refund that is paid at once; another business key each time."""
    order = f"order-{uuid4().hex[:12]}"
    return {
        "event_id": str(uuid4()),
        "event_type": "run.requested",
        "schema_version": "v1",
        "occurred_at": at.isoformat(),
        "correlation_id": str(uuid4()),
        "org_id": str(organization.id),
        "product_id": str(_product(organization).id),
        "payload": {
            "definition_slug": SLUG,
            "business_key": order,
            "input": {"amount_cents": 1999, "currency": "EUR", "order_ref": order},
        },
    }


def _make(organization: Organization, *, at: datetime) -> WorkflowDefinition:
    people = demo_people(organization)
    product = Product.objects.filter(organization=organization, slug=SLUG).first() or product_create(
        actor=SYSTEM, at=at, organization=organization, slug=SLUG, name="Refunds"
    )
    draft = definition_create(
        actor=people["operator"],
        at=at,
        organization=organization,
        document=json.loads(DOCUMENT.read_text(encoding="utf-8")),
        slug=SLUG,
        product_id=product.id,
    )
    definition_open(definition_publish(actor=people["operator"], at=at, definition_id=draft.id), people, at=at)
    return draft


def _product(organization: Organization) -> Product:
    return Product.objects.get(organization=organization, slug=SLUG)
