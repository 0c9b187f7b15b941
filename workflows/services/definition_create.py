"""New drafts: from scratch, from a template, from another definition."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.ledger.append import actor_reference
from governance.models import Organization, Product
from governance.services.note import text_check
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound
from workflows.models import WorkflowDefinition
from workflows.selectors.definition import definition_get, next_version, organization_lock, product_get
from workflows.services.definition_document import document_check, document_set, document_with
from workflows.services.definition_record import definition_record
from workflows.services.definition_slug import slug_check, slug_for_clone, slug_from


@violations_recorded
def definition_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    document: Any,
    slug: str = "",
    product_id: UUID | None = None,
    reason: str = "",
    **settings: Any,
) -> WorkflowDefinition:
    """A draft may have faults; publishing finds them. `settings`: name, default_mode, workflow_timeout_seconds."""
    text_check(text=reason, pointer="/reason")
    document = document_check(document_with(document, settings) if isinstance(document, dict) else document)
    with transaction.atomic():
        organization_lock(actor=actor, organization_id=organization.id)
        product = product_get(organization_id=organization.id, product_id=product_id)
        slug = slug_check(
            organization_id=organization.id, product_id=product_id, slug=slug or slug_from(document.get("name", ""))
        )
        draft = _draft(organization, product, slug, document, actor=actor, at=at)
        definition_record(draft, "definition.created", actor=actor, at=at, before={}, reason=reason)
    return draft


@violations_recorded
def definition_clone(
    *,
    actor: Actor,
    at: datetime,
    source_id: UUID,
    organization: Organization,
    slug: str | None = None,
    product_id: UUID | None = None,
    reason: str = "",
    **settings: Any,
) -> WorkflowDefinition:
    """A template's or an own definition's content as a new draft. Without `product_id`: the source's product."""
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        source = definition_get(definition_id=source_id)
        if source.organization_id not in {None, organization.id}:
            raise NotFound
        organization_lock(actor=actor, organization_id=organization.id)
        product = product_get(organization_id=organization.id, product_id=product_id or source.product_id)
        place: dict[str, Any] = {"organization_id": organization.id, "product_id": product.id if product else None}
        tail = product.slug if product else "all"
        draft = _draft(
            organization,
            product,
            slug_check(slug=slug, **place) if slug else slug_for_clone(source=source, tail=tail, **place),
            document_check(document_with(source.definition, settings)),
            actor=actor,
            at=at,
            cloned_from=source,
        )
        came = {"from": str(source.id), "from_slug": source.slug, "from_version": source.version}
        definition_record(draft, "definition.cloned", actor=actor, at=at, before={}, reason=reason, **came)
    return draft


def _draft(
    organization: Organization,
    product: Product | None,
    slug: str,
    document: dict[str, Any],
    *,
    actor: Actor,
    at: datetime,
    cloned_from: WorkflowDefinition | None = None,
) -> WorkflowDefinition:
    """The next version for this organization and product. The organization's lock makes the count exact."""
    draft = WorkflowDefinition(
        organization=organization,
        product=product,
        slug=slug,
        version=next_version(organization_id=organization.id, product_id=product.id if product else None),
        cloned_from=cloned_from,
        created_by_ref=actor_reference(actor),
        created_at=at,
        updated_at=at,
    )
    document_set(draft, document)
    draft.save(force_insert=True)
    return draft
