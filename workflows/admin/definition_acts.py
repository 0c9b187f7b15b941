"""What operators do with a definition: each a page that says what will happen, and one service."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from governance.admin.base import Act, ConsoleAdmin, console_actor
from workflows.admin.definition_forms import AddForm, ArchiveForm, CloneForm, EditForm, PublishForm
from workflows.admin.definition_text import as_written
from workflows.definitions.diff import diff, words
from workflows.errors import DefinitionInvalid
from workflows.models import WorkflowDefinition
from workflows.selectors.definition import definition_active, revision_latest, runs_going
from workflows.services.definition_change import definition_archive, definition_change
from workflows.services.definition_contract import Terms, contract_preview
from workflows.services.definition_create import definition_clone, definition_create
from workflows.services.definition_publish import definition_publish
from workflows.services.definition_validate import as_errors, definition_validate
from workflows.starters.starters import starter

EDITOR = "admin/workflows/definition_editor.html"


def add(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
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
    return model_admin.done(request, made, "Drafted. No case follows it until it is published.")


def edit(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]) -> str:
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


def clone(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]) -> Any:
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


def publish(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]) -> str:
    reason = data.pop("reason")
    found = definition_publish(
        actor=console_actor(request), at=timezone.now(), definition_id=obj.id, terms=Terms(**data), reason=reason
    )
    if found.missing:
        return f"Published. Contract {found.contract} is closed until {len(found.missing)} areas are approved."
    return f"Published. Contract {found.contract} is open: new cases follow it from now on."


def validate(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]) -> str:
    findings = definition_validate(definition_id=obj.id)
    if findings:
        raise DefinitionInvalid(errors=as_errors(findings))
    return "Nothing is wrong with it." + (" It can be published." if obj.status == "draft" else "")


def archive(model_admin: ConsoleAdmin, request: HttpRequest, obj: WorkflowDefinition, data: dict[str, Any]) -> str:
    definition_archive(actor=console_actor(request), at=timezone.now(), definition_id=obj.id, **data)
    return "Archived. What runs goes on."


def publish_context(request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
    findings = definition_validate(definition_id=obj.id)
    active = definition_active(organization_id=obj.organization_id, product_id=obj.product_id)
    preview = None if findings else contract_preview(definition=obj)
    return {
        "faults": findings,
        "edit": reverse("admin:workflows_workflowdefinition_act", args=[obj.id, "edit"]),
        "active": active,
        "runs": runs_going(definition=active) if active else 0,
        "changes": words(diff(active.definition, obj.definition)) if active else [],
        "preview": preview,
        "blocked": bool(findings) or bool(preview and preview.refusal),
    }


def archive_context(request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
    if obj.status != "active":
        return {}
    runs, product = runs_going(definition=obj), obj.product.name if obj.product else "the whole organization"
    going = f"{runs} run{'s' if runs > 1 else ''} under it will go on, with contract {obj.contract}."
    said = going if runs else "Nothing runs under it."
    return {"warning": f"New cases of {product} find no definition any more. {said}"}


def clone_initial(obj: WorkflowDefinition) -> dict[str, Any]:
    slug = "" if obj.is_template else obj.slug
    return {"name": obj.name, "slug": slug, "product": obj.product_id, "organization": obj.organization_id}


ADD = Act(
    "add",
    "Draft a definition",
    "A workflow as a JSON document. Most people begin with a clone of a template. No case follows a draft.",
    add,
    AddForm,
    button="Save draft",
    template=EDITOR,
    initial=lambda _: {"definition": as_written(starter("ai_only"))},
)
ACTS = [
    Act(
        "edit",
        "Edit",
        "Drafts only; what is published never changes. Every save is a revision in the history.",
        edit,
        EditForm,
        button="Save",
        available=lambda obj: obj.status == "draft" and not obj.is_template,
        template=EDITOR,
        initial=lambda obj: {
            "slug": obj.slug,
            "definition": as_written(obj.definition),
            "revision": revision_latest(definition=obj),
        },
    ),
    Act(
        "validate",
        "Validate",
        "Looks for everything that would keep it from being published now. Changes nothing.",
        validate,
        available=lambda obj: obj.status != "archived" and not obj.is_template,
    ),
    Act(
        "publish",
        "Publish",
        "New cases follow it from the next one on. What is published never changes; a change is a clone.",
        publish,
        PublishForm,
        available=lambda obj: obj.status == "draft" and not obj.is_template,
        template="admin/workflows/definition_publish.html",
        context=publish_context,
    ),
    Act(
        "clone",
        "Clone",
        "A new draft with the same content: the next version for its organization and product.",
        clone,
        CloneForm,
        initial=clone_initial,
    ),
    Act(
        "archive",
        "Archive",
        "Nothing starts under it any more. Its record stays, and what runs has its own copy.",
        archive,
        ArchiveForm,
        available=lambda obj: obj.status != "archived" and not obj.is_template,
        danger=True,
        context=archive_context,
    ),
]
