"""Records a change of a definition (one revision, one ledger entry), and chooses slugs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.text import slugify

from governance.boundary.services import reference_check
from governance.ledger.services import actor_reference, ledger_append
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.rules.diff import diff
from workflows.definitions.selectors import revision_latest, slug_is_anothers
from workflows.definitions.services.document import definition_sha256


def content_of(definition: WorkflowDefinition) -> dict[str, Any]:
    """What a revision compares."""
    # The document is not copied: services replace it and never change it in place.
    return {"slug": definition.slug, "status": str(definition.state), "definition": definition.definition}


def definition_record(
    definition: WorkflowDefinition,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    before: Mapping[str, Any],
    reason: str = "",
    **facts: Any,
) -> WorkflowDefinitionRevision:
    """`before`: what `content_of` returned before the change; empty for a new definition. The row is locked, or new."""
    revision = WorkflowDefinitionRevision(
        workflow_definition=definition,
        number=revision_latest(definition=definition) + 1,
        changed_by_kind=actor.kind.value,
        changed_by_ref=actor_reference(actor),
        diff=_changes_between(before, content_of(definition)),
        sha256=definition_sha256(definition.definition),
        reason=reason,
        created_at=at,
    )
    revision.save()
    ledger_append(
        action=action,
        organization_id=definition.organization_id,
        subject_type="definition",
        subject_id=definition.id,
        actor=actor,
        at=at,
        payload={
            "slug": definition.slug,
            "version": definition.version,
            "product": str(definition.product_id) if definition.product_id else None,
            "revision": revision.number,
            "document": revision.sha256,
            **facts,
        },
    )
    return revision


def _changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """`definition`: the changes of the document. The first revision's are from an empty document, so that all revisions
    together rebuild it. `slug` and `status` only if they changed."""
    found: dict[str, Any] = {"definition": diff(before.get("definition", {}), after["definition"])}
    for name in ("slug", "status"):
        if before.get(name) != after[name]:
            found[name] = {"before": before.get(name), "after": after[name]}
    return found


LENGTH = 63


def slug_check(*, organization_id: UUID | None, product_id: UUID | None, slug: str) -> str:
    """The slug, if no other product has it. Call it under the organization's lock: otherwise two products could take
    it."""
    reference_check(reference=slug, pointer="/slug")
    if slug_is_anothers(organization_id=organization_id, product_id=product_id, slug=slug):
        raise AlreadyExists("Another product's definitions have this slug; it names their contract. Choose another.")
    return slug


def slug_from(name: object) -> str:
    slug = slugify(str(name)).replace("_", "-")[:LENGTH].strip("-")
    if not slug:
        raise InvalidInput(errors=[FieldError("/slug", "give a slug, or a name that one can be made of")])
    return slug


def slug_for_clone(*, source: WorkflowDefinition, organization_id: UUID, product_id: UUID | None, tail: str) -> str:
    """The source's slug; with `tail` or a number appended if another product has it."""
    # Bounded, because each candidate is a query.
    for end in ("", f"-{tail}", *(f"-{number}" for number in range(2, 1000))):
        slug = source.slug[: LENGTH - len(end)].strip("-") + end if len(end) < LENGTH else ""
        if slug and not slug_is_anothers(organization_id=organization_id, product_id=product_id, slug=slug):
            return slug
    raise InvalidInput(errors=[FieldError("/slug", "give one: all that could be made up are taken")])
