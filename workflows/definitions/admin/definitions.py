"""Definitions in the console: the list, and one definition with its picture, its history and its contract."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.console.admin.base import ConsoleAdmin
from governance.console.admin.forms import JsonTextError, json_parse, pretty
from governance.console.admin.lists import choice_filter
from reasoncodes.base.errors import DomainError
from workflows.definitions.admin import acts as definition_acts
from workflows.definitions.admin.forms import changed_lines, document_as_written, revision_words
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.diff import changes_in_words, diff
from workflows.definitions.selectors import (
    contract_standing,
    definition_siblings,
    document_at,
    revision_list,
    template_list,
)
from workflows.definitions.services.document import definition_validate, document_findings
from workflows.definitions.states import DefinitionStatus, Mode
from workflows.runs.selectors.pictures import workflow_picture
from workflows.runs.services.what_if import MOST_RUNS, definition_what_if

LISTED = 50


class DefinitionPages(ConsoleAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("validate/", view(self.validate_view), name=self.url_name("validate")),
            path("templates/", view(self.templates_view), name=self.url_name("templates")),
            path("<uuid:object_id>/compare/", view(self.compare_view), name=self.url_name("compare")),
            path("<uuid:object_id>/what-if/", view(self.what_if_view), name=self.url_name("what_if")),
            *super().get_urls(),
        ]

    def validate_view(self, request: HttpRequest) -> HttpResponse:
        """Live: the text as it stands, judged for the organization that is chosen, and its picture. Saves nothing."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            organization_id = UUID(request.GET.get("organization") or request.POST.get("organization", ""))
        except ValueError:
            raise PermissionDenied from None
        self.require_operator(request, organization_id)
        try:
            document = json_parse(request.POST.get("definition", ""))
        except JsonTextError as error:
            return JsonResponse({"findings": [{"pointer": "", "rule": "json", "message": str(error)}], "picture": None})
        found = document_findings(organization_id=organization_id, document=document)
        drawn = workflow_picture(document, title="The workflow as it is written now")
        return JsonResponse({"findings": [finding.as_json() for finding in found], "picture": drawn})

    def templates_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        templates = [
            {
                "row": row,
                "description": row.definition.get("description", ""),
                "picture": workflow_picture(row.definition, title=row.name, prefix=row.slug),
                "clone": self.act_url(row, "clone") if self._operates(request) else "",
            }
            for row in template_list().defer(None).order_by("id")
        ]
        return self._page(request, "admin/workflows/templates.html", title="Workflow templates", templates=templates)

    def compare_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Two versions of the same product, or two revisions of this one; `before` and `after` name them."""
        obj = self.object_or_404(request, object_id)
        versions = list(definition_siblings(definition=obj).only("id", "version", "state")[:LISTED])
        revisions = list(obj.revisions.order_by("-number").values_list("number", flat=True)[:LISTED])
        earlier = [row for row in versions if row.version < obj.version]
        before = request.GET.get("before") or (f"version:{earlier[0].id}" if earlier else "revision:1")
        after = request.GET.get("after") or f"version:{obj.id}"
        documents = [self._document(obj, name) for name in (before, after)]
        return self._page(
            request,
            "admin/workflows/definition_compare.html",
            title=f"Compare: {obj}",
            original=obj,
            back=self.page_url("change", obj.pk),
            choices=[(f"version:{row.id}", f"version {row.version} ({row.state})") for row in versions]
            + [(f"revision:{number}", f"revision {number} of version {obj.version}") for number in revisions],
            before=before,
            after=after,
            sentences=changes_in_words(diff(*documents)),
            lines=changed_lines(*documents),
        )

    def what_if_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """What the last finished runs would have done under this version; `last` says how many."""
        obj = self.object_or_404(request, object_id)
        asked = request.GET.get("last", "20")
        last = min(max(int(asked[:4]) if asked.isdecimal() else 20, 1), MOST_RUNS)
        found, refusal = None, ""
        try:
            found = definition_what_if(definition_id=obj.id, last=last)
        except DomainError as error:
            refusal = error.detail
        return self._page(
            request,
            "admin/workflows/definition_what_if.html",
            title=f"What would have happened: {obj}",
            original=obj,
            back=self.page_url("change", obj.pk),
            last=last,
            most=MOST_RUNS,
            found=found,
            refusal=refusal,
        )

    @staticmethod
    def _document(obj: WorkflowDefinition, name: str) -> dict[str, Any]:
        """404 for a name that is neither a revision of this one nor a version for the same product."""
        kind, _, value = name.partition(":")
        if kind == "revision" and value.isdecimal():
            found = document_at(definition=obj, number=int(value[:9]))
        else:
            row = definition_siblings(definition=obj).filter(id=_uuid(value)).first() if kind == "version" else None
            found = row.definition if row else None
        if found is None:
            raise Http404
        return found

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        return render(request, template, {**self.admin_site.each_context(request), "opts": self.opts, **context})


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404 from None


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
        choice_filter("status", {state.value: state.value for state in DefinitionStatus}, field="state"),
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
        """Anybody who operates an organization may clone a template."""
        return super()._operates(request, None if obj is not None and obj.is_template else obj, **kwargs)

    @display(description="Status", label=STATUS_LABELS)
    def status_shown(self, obj: WorkflowDefinition) -> str:
        return "template" if obj.is_template else str(obj.state)

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
        links = [{"title": "Compare", "url": self.page_url("compare", obj.pk)}]
        if not obj.is_template:
            links.append({"title": "What would have happened", "url": self.page_url("what_if", obj.pk)})
        return links

    def page_context(self, request: HttpRequest, obj: WorkflowDefinition) -> dict[str, Any]:
        history = [(row, revision_words(row)) for row in revision_list(definition_id=obj.id)[:LISTED]]
        versions = definition_siblings(definition=obj).defer("definition").select_related("contract")
        return {
            "picture": workflow_picture(obj.definition, title=obj.name),
            "description": obj.definition.get("description", ""),
            "text": pretty(document_as_written(obj.definition), sort=False),
            "faults": definition_validate(definition_id=obj.id) if obj.state == "draft" else (),
            "history": history,
            "versions": list(versions[:LISTED]),
            "standing": contract_standing(definition=obj),
            "edit": self.act_url(obj, "edit") if self._may_edit(request, obj) else "",
        }

    def _may_edit(self, request: HttpRequest, obj: WorkflowDefinition) -> bool:
        return obj.state == "draft" and not obj.is_template and self._operates(request, obj)
