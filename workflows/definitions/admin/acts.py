"""Acts on a definition. Each is a page that says what will happen, and calls one service."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from workflows.definitions.admin.forms import (
    AddForm,
    ArchiveForm,
    CloneForm,
    EditForm,
    PublishForm,
    document_as_written,
)
from workflows.definitions.errors import DefinitionInvalid
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.diff import changes_in_words, diff
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.selectors import definition_active, definition_organization, revision_latest, runs_going
from workflows.definitions.services.change import definition_archive, definition_change, definition_unpublish
from workflows.definitions.services.contract import contract_preview
from workflows.definitions.services.create import definition_clone, definition_create
from workflows.definitions.services.document import as_errors, definition_validate

EDITOR = "admin/workflows/definition_editor.html"


def _definition_add_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    product = data["product"]
    made = definition_create(
        actor=model_admin.require_operator(request, data["organization"].id),
        at=timezone.now(),
        organization=data["organization"],
        document=data["definition"],
        slug=data["slug"],
        product_id=product.id if product else None,
        reason=data["reason"],
    )
    return model_admin.done(request, made, "Draft created. No case uses it until you publish it.")


def _definition_edit_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> str:
    definition_change(
        actor=console_actor(request),
        at=timezone.now(),
        definition_id=obj.id,
        document=data["definition"],
        slug=data["slug"],
        reason=data["reason"],
        seen_revision=data["revision"],
    )
    return "Saved."


def _definition_clone_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> Any:
    product = data["product"]
    made = definition_clone(
        actor=model_admin.require_operator(request, data["organization"].id),
        at=timezone.now(),
        source_id=obj.id,
        organization=data["organization"],
        name=data["name"],
        slug=data["slug"],
        product_id=product.id if product else None,
        reason=data["reason"],
    )
    return model_admin.done(request, made, f"Version {made.version} is a draft with the same content.")


def _definition_publish_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=console_actor(request),
        at=timezone.now(),
        organization=definition_organization(definition_id=obj.id),
        kind="definition.publish",
        subject=str(obj.id),
        details=data,
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    found = outcome.applied.made
    if found.missing:
        return f"Published. Contract {found.contract} is closed until {len(found.missing)} areas are approved."
    return f"Published. Contract {found.contract} is open. New cases use it from now on."


def _definition_validate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> str:
    findings = definition_validate(definition_id=obj.id)
    if findings:
        raise DefinitionInvalid(errors=as_errors(findings))
    return "No errors found." + (" You can publish it." if obj.state == "draft" else "")


def _definition_archive_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> str:
    definition_archive(actor=console_actor(request), at=timezone.now(), definition_id=obj.id, **data)
    return "Archived. Runs in progress continue."


def _definition_unpublish_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]
) -> str:
    earlier = definition_unpublish(actor=console_actor(request), at=timezone.now(), definition_id=obj.id, **data)
    return f"Archived. Version {earlier.version} is in force again."


def _definition_publish_context(request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
    findings = definition_validate(definition_id=obj.id)
    active = definition_active(definition=obj)
    preview = None if findings else contract_preview(definition=obj)
    return {
        "faults": findings,
        "edit": reverse("admin:workflows_workflowdefinition_act", args=[obj.id, "edit"]),
        "active": active,
        "runs": runs_going(definition=active) if active else 0,
        "changes": changes_in_words(diff(active.definition, obj.definition)) if active else [],
        "preview": preview,
        "blocked": bool(findings) or bool(preview and preview.refusal),
    }


def _archive_context(request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
    if obj.state != "active":
        return {}
    runs, product = runs_going(definition=obj), obj.product.name if obj.product else "the whole organization"
    going = f"{runs} run{'s' if runs > 1 else ''} that use it will continue, with contract {obj.contract}."
    said = going if runs else "No run uses it."
    return {"warning": f"New cases of {product} will have no definition. {said}"}


def _clone_initial(obj: WorkflowDefinition) -> dict[str, Any]:
    slug = "" if obj.is_template else obj.slug
    return {"name": obj.name, "slug": slug, "product": obj.product_id, "organization": obj.organization_id}


ADD = Act(
    "add",
    "Draft a definition",
    "A definition is a JSON document that describes a workflow. Most people start with a clone of a template. No "
    "case uses a draft.",
    _definition_add_act,
    AddForm,
    button="Save draft",
    template=EDITOR,
    initial=lambda _: {"definition": document_as_written(definition_starter("ai_only"))},
)
ACTS = [
    Act(
        "edit",
        "Edit",
        "You can edit only drafts; a published definition never changes. Every save adds a revision to the history.",
        _definition_edit_act,
        EditForm,
        button="Save",
        available=lambda obj: obj.state == "draft" and not obj.is_template,
        template=EDITOR,
        initial=lambda obj: {
            "slug": obj.slug,
            "definition": document_as_written(obj.definition),
            "revision": revision_latest(definition=obj),
        },
    ),
    Act(
        "validate",
        "Validate",
        "Checks the definition for everything that would prevent publishing. Changes nothing.",
        _definition_validate_act,
        available=lambda obj: obj.state != "archived" and not obj.is_template,
    ),
    Act(
        "publish",
        "Publish",
        "A second person has to confirm this, unless the organization is still being founded. Then new cases use this "
        "definition. A published definition never changes; to change it, clone it.",
        _definition_publish_act,
        PublishForm,
        available=lambda obj: obj.state == "draft" and not obj.is_template,
        template="admin/workflows/definition_publish.html",
        context=_definition_publish_context,
    ),
    Act(
        "clone",
        "Clone",
        "Creates a draft with the same content, as the next version for its organization and product.",
        _definition_clone_act,
        CloneForm,
        initial=_clone_initial,
    ),
    Act(
        "unpublish",
        "Unpublish",
        "Archives this version and puts the one before it in force again. New cases follow that one at once. Runs in "
        "progress keep their own copy and continue.",
        _definition_unpublish_act,
        ArchiveForm,
        available=lambda obj: obj.state == "active" and not obj.is_template and obj.version > 1,
        danger=True,
    ),
    Act(
        "archive",
        "Archive",
        "No new run uses this definition. Its record stays. Runs in progress keep their own copy and continue.",
        _definition_archive_act,
        ArchiveForm,
        available=lambda obj: obj.state != "archived" and not obj.is_template,
        danger=True,
        context=_archive_context,
    ),
]
