"""Definitions in the console: the list, and one definition with its picture, its history and its contract."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.json_text import pretty
from governance.admin.lists import choice_filter
from workflows.admin import definition_acts
from workflows.admin.definition_pages import LISTED, DefinitionPages
from workflows.admin.definition_text import as_written, revision_words
from workflows.models import WorkflowDefinition
from workflows.pictures import workflow_picture
from workflows.selectors.definition import contract_standing, definition_siblings, revision_list
from workflows.services.definition_validate import definition_validate
from workflows.states import DefinitionStatus, Mode

STATUS_LABELS = {"draft": "info", "active": "success", "archived": "default"}


@admin.register(WorkflowDefinition)
class WorkflowDefinitionAdmin(DefinitionPages):
    addable = True
    list_display = [
        "__str__",
        "slug",
        "product_shown",
        "status_shown",
        "default_mode",
        "contract_shown",
        "published_at",
        "organization",
    ]
    list_filter = [
        choice_filter("status", {status.value: status.value for status in DefinitionStatus}),
        choice_filter("default_mode", {mode.value: mode.value for mode in Mode}),
        "product",
    ]
    search_fields = ["name", "slug", "=id"]
    search_help_text = "Name, slug or id."
    ordering = ["-id"]
    fields = [
        "organization",
        "product_shown",
        "slug",
        "version",
        "status_shown",
        "default_mode",
        "timeout_shown",
        "contract_shown",
        "cloned_from_shown",
        "created_at",
        "updated_at",
        "published_at",
        "snapshot_shown",
    ]
    readonly_fields = fields
    change_form_outer_after_template = "admin/workflows/definition.html"
    list_before_template = "admin/workflows/definition_list.html"
    add_act = definition_acts.ADD
    acts = definition_acts.ACTS

    class Media:
        css = {"all": ["workflows/graph.css", "workflows/definitions.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkflowDefinition]:
        """Templates have a page of their own; each has its row's page like any other."""
        rows = super().get_queryset(request).select_related("organization", "product", "contract", "cloned_from")
        if self.is_list(request):
            return rows.filter(is_template=False).defer("definition", "cloned_from__definition")
        return rows

    def _operates(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> bool:
        """A template is cloned by whoever operates any organization."""
        return super()._operates(request, None if obj is not None and obj.is_template else obj, **kwargs)

    @display(description="Status", label=STATUS_LABELS)
    def status_shown(self, obj: WorkflowDefinition) -> str:
        return "template" if obj.is_template else str(obj.status)

    @admin.display(description="Product")
    def product_shown(self, obj: WorkflowDefinition) -> str:
        return obj.product.name if obj.product else "all products" if obj.organization_id else "none: a template"

    @admin.display(description="Contract")
    def contract_shown(self, obj: WorkflowDefinition) -> SafeString | str:
        if obj.contract is None:
            return "none yet"
        url = reverse("admin:governance_contract_change", args=[obj.contract.pk])
        return format_html('<a href="{}">{}</a>, {}', url, obj.contract, obj.contract.state)

    @admin.display(description="Cloned from")
    def cloned_from_shown(self, obj: WorkflowDefinition) -> SafeString | str:
        source = obj.cloned_from
        return format_html('<a href="{}">{}</a>', self.page_url("change", source.pk), source) if source else "nothing"

    @admin.display(description="Snapshot SHA-256")
    def snapshot_shown(self, obj: WorkflowDefinition) -> SafeString | str:
        shown = format_html('<code class="wf-hash">{}</code>', obj.snapshot_sha256)
        return shown if obj.snapshot_sha256 else "none yet: a draft"

    @admin.display(description="Must end within")
    def timeout_shown(self, obj: WorkflowDefinition) -> str:
        return str(timedelta(seconds=obj.workflow_timeout_seconds)).removesuffix(", 0:00:00")

    def page_links(self, request: HttpRequest, obj: WorkflowDefinition) -> list[dict[str, Any]]:
        return [{"title": "Compare", "url": self.page_url("compare", obj.pk)}]

    def page_context(self, request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
        history = [(row, revision_words(row)) for row in revision_list(definition_id=obj.id)[:LISTED]]
        versions = definition_siblings(definition=obj).defer("definition").select_related("contract")
        return {
            "picture": workflow_picture(obj.definition, title=obj.name),
            "description": obj.definition.get("description", ""),
            "text": pretty(as_written(obj.definition), sort=False),
            "faults": definition_validate(definition_id=obj.id) if obj.status == "draft" else (),
            "history": history,
            "versions": list(versions[:LISTED]),
            "standing": contract_standing(definition=obj),
            "edit": self.act_url(obj, "edit") if self._may_edit(request, obj) else "",
        }

    def _may_edit(self, request: HttpRequest, obj: WorkflowDefinition) -> bool:
        return obj.status == "draft" and not obj.is_template and self._operates(request, obj)
