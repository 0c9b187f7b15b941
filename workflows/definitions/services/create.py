"""Creates drafts: new, cloned from a template or a definition; and adopts the starters as templates."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.authorship.services import author_require, authorship_add, authorship_copy
from governance.authorship.states import WorkKind
from governance.boundary.services import text_check
from governance.ledger.services import actor_reference
from governance.tenancy.models import Organization, Product
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import starters
from workflows.definitions.selectors import definition_get, next_version, organization_lock, product_get
from workflows.definitions.services.document import definition_sha256, document_check, document_set, document_with
from workflows.definitions.services.record import content_of, definition_record, slug_check, slug_for_clone, slug_from


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
    """A draft may be invalid; publishing checks it. `settings`: name, default_mode, workflow_timeout_seconds."""
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
    """A new draft with the content of a template or of the organization's own definition. Default: the source's
    product."""
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        source = definition_get(definition_id=source_id)
        # Not "forbidden": the answer must not tell that another organization has such a definition.
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
    """The next version for this organization and product, numbered under the organization's lock."""
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
    author_require(actor=actor)
    draft.save(force_insert=True)
    authorship_add(
        actor=actor, at=at, organization_id=organization.id, kind=WorkKind.DEFINITION, subject_ids=[draft.id]
    )
    # A clone of what was never published still has its authors.
    if cloned_from is not None and not cloned_from.is_template and cloned_from.published_at is None:
        authorship_copy(
            at=at, organization_id=organization.id, kind=WorkKind.DEFINITION, copies={draft.id: cloned_from.id}
        )
    return draft


SHIPPED = "Shipped with the program"


def templates_adopt(*, at: datetime) -> list[str]:
    """Create or update the templates from the starters; returns the slugs that changed. A newer starter replaces the
    template's document, with a new version and a revision. Clones are copies and do not change."""
    # Called after every `migrate`, so the usual case is one query: hashes are compared, and documents are not read.
    wanted = {name.replace("_", "-"): document for name, document in starters().items()}
    with every_tenant():
        rows = WorkflowDefinition.objects.filter(is_template=True)
        known = dict(rows.values_list("slug", "snapshot_sha256"))
        changed = {slug: doc for slug, doc in wanted.items() if known.get(slug) != definition_sha256(doc)}
        if changed:
            with transaction.atomic():
                for slug, document in changed.items():
                    _adopt(slug, document, at=at)
    return list(changed)


def _adopt(slug: str, document: dict[str, Any], *, at: datetime) -> None:
    # Locked: two that migrate at the same time must not both write the next version.
    template = WorkflowDefinition.objects.select_for_update(no_key=True).filter(is_template=True, slug=slug).first()
    before: dict[str, Any] = {}
    if template is None:
        template = WorkflowDefinition(slug=slug, is_template=True, created_at=at)
        action = "definition.created"
    else:
        before, action = content_of(template), "definition.changed"
        template.version += 1
    document_set(template, document)
    template.snapshot_sha256, template.updated_at = definition_sha256(document), at
    template.save()
    definition_record(template, action, actor=SYSTEM, at=at, before=before, reason=SHIPPED)
