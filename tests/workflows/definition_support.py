"""Words that the tests of definitions share: documents, templates, a published workflow."""

from copy import deepcopy
from typing import Any

from governance.tenancy.models import Product
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.factories import ProductFactory
from tests.governed import AT, approve
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.services.create import definition_create
from workflows.definitions.services.publish import Published, definition_publish

URL = "/api/v1/workflow-definitions"


def document(name: str = "ai_only", **changes: Any) -> dict[str, Any]:
    return deepcopy(definition_starter(name)) | changes


def template(slug: str = "ai-only") -> WorkflowDefinition:
    with every_tenant():
        return WorkflowDefinition.objects.get(is_template=True, slug=slug)


def product(cast: Cast, slug: str = "dermatology") -> Product:
    with every_tenant():
        found = Product.objects.filter(organization=cast.organization, slug=slug).first()
        return found or ProductFactory(organization=cast.organization, slug=slug)


def draft(cast: Cast, *, slug: str = "triage", of: Product | None = None, **changes: Any) -> WorkflowDefinition:
    with every_tenant():
        return definition_create(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=AT,
            organization=cast.organization,
            slug=slug,
            product_id=of.id if of else None,
            document=changes.pop("document", None) or document(**changes),
        )


def publish(cast: Cast, definition: WorkflowDefinition, **terms: Any) -> Published:
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        return definition_publish(actor=actor, at=AT, definition_id=definition.id, **terms)


def published(cast: Cast, *, approved: bool = False, **kwargs: Any) -> WorkflowDefinition:
    """Published by Alice; `approved`: its contract's ten areas too."""
    found = publish(cast, draft(cast, **kwargs))
    if approved:
        approve(cast, found.contract)
    return found.definition


def stored(definition: WorkflowDefinition) -> WorkflowDefinition:
    with every_tenant():
        return WorkflowDefinition.objects.select_related("contract").get(id=definition.id)
