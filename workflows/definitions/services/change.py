"""Changes drafts, with a revision each, and archives definitions. A definition that is no draft cannot be changed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django_fsm import TransitionNotAllowed

from governance.authorship.services import author_require, authorship_add
from governance.authorship.states import WorkKind
from governance.boundary.services import text_check
from governance.violations.errors import RecordImmutable
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import WrongState
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.selectors import definition_before, definition_lock, revision_latest
from workflows.definitions.services.document import document_check, document_set, document_with
from workflows.definitions.services.record import content_of, definition_record, slug_check
from workflows.definitions.states import DefinitionStatus

COLUMNS = ["definition", "slug", "name", "default_mode", "workflow_timeout_seconds", "updated_at"]


@violations_recorded
def definition_change(
    *,
    actor: Actor,
    at: datetime,
    definition_id: UUID,
    document: Any = None,
    slug: str | None = None,
    reason: str = "",
    seen_revision: int | None = None,
    **settings: Any,
) -> WorkflowDefinition:
    """Drafts only. `seen_revision`: refuse if somebody else has changed the draft since. `settings` as in
    `definition_create`."""
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        definition = definition_lock(actor=actor, definition_id=definition_id)
        _only_drafts(definition)
        author_require(actor=actor)
        # Two people may edit the same draft; without this the second would silently undo what the first has changed.
        if seen_revision is not None and seen_revision != revision_latest(definition=definition):
            raise WrongState("Somebody changed this draft meanwhile. Look at its history, then make your change again.")
        before = content_of(definition)
        if slug is not None and slug != definition.slug:
            definition.slug = slug_check(
                organization_id=definition.organization_id, product_id=definition.product_id, slug=slug
            )
        given = definition.definition if document is None else document
        document_set(definition, document_check(document_with(given, settings) if isinstance(given, dict) else given))
        # Saving without a change writes nothing: a revision and a ledger entry always stand for a real change.
        if content_of(definition) != before:
            definition.updated_at = at
            definition.save(update_fields=COLUMNS)
            authorship_add(
                actor=actor,
                at=at,
                organization_id=definition.organization_id,
                kind=WorkKind.DEFINITION,
                subject_ids=[definition.id],
            )
            definition_record(definition, "definition.changed", actor=actor, at=at, before=before, reason=reason)
    return definition


@violations_recorded
def definition_archive(*, actor: Actor, at: datetime, definition_id: UUID, reason: str = "") -> WorkflowDefinition:
    """New cases find no definition any more. Runs that have started continue: they follow their frozen copy."""
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        definition = definition_lock(actor=actor, definition_id=definition_id)
        definition_archive_locked(definition, actor=actor, at=at, reason=reason)
    return definition


@violations_recorded
def definition_unpublish(*, actor: Actor, at: datetime, definition_id: UUID, reason: str = "") -> WorkflowDefinition:
    """Take a bad version back: it is archived, and the version before it takes new runs again, at once. Returns that
    version. One person is enough, because two have put it in force before. Runs that have started continue."""
    text_check(text=reason, pointer="/reason")
    with transaction.atomic():
        bad = definition_lock(actor=actor, definition_id=definition_id)
        if bad.state != DefinitionStatus.ACTIVE:
            raise WrongState(f"A definition that is {bad.state} is not published.")
        found = definition_before(definition=bad)
        if found is None or found.takes_cases != bad.takes_cases:
            raise WrongState("No version before it has an open contract. Archive it, or publish another one.")
        earlier = definition_lock(actor=actor, definition_id=found.id)
        # First: only one version with a slug can be active.
        definition_archive_locked(bad, actor=actor, at=at, reason=reason, facts={"replaced_by": str(earlier.id)})
        before = content_of(earlier)
        earlier.restore()
        earlier.updated_at = at
        earlier.save(update_fields=["state", "updated_at"])
        facts = {"instead_of": str(bad.id)}
        definition_record(earlier, "definition.restored", actor=actor, at=at, before=before, reason=reason, **facts)
    return earlier


def definition_archive_locked(
    definition: WorkflowDefinition, *, actor: Actor, at: datetime, reason: str, facts: Mapping[str, Any] | None = None
) -> None:
    """In the caller's transaction, with the row locked."""
    before = content_of(definition)
    try:
        definition.archive()
    except TransitionNotAllowed as error:
        raise WrongState(f"A definition that is {definition.state} cannot be archived.") from error
    definition.updated_at = at
    definition.save(update_fields=["state", "updated_at"])
    definition_record(
        definition, "definition.archived", actor=actor, at=at, before=before, reason=reason, **dict(facts or {})
    )


def _only_drafts(definition: WorkflowDefinition) -> None:
    if definition.state != DefinitionStatus.DRAFT:
        raise RecordImmutable(
            "The definition has left its draft. Clone it, and change the clone.",
            subject_type="definition",
            subject_id=definition.id,
            organization_id=definition.organization_id,
        )
