"""Pages of definitions beside the list and the row: live validation, comparison, templates."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from governance.admin.base import ConsoleAdmin
from governance.admin.json_text import JsonTextError, parse
from workflows.admin.definition_text import changed_lines
from workflows.definitions.diff import diff, words
from workflows.models import WorkflowDefinition
from workflows.pictures import workflow_picture
from workflows.selectors.definition import definition_siblings, document_at, template_list
from workflows.services.definition_validate import document_findings

LISTED = 50


class DefinitionPages(ConsoleAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("validate/", view(self.validate_view), name=self.url_name("validate")),
            path("templates/", view(self.templates_view), name=self.url_name("templates")),
            path("<uuid:object_id>/compare/", view(self.compare_view), name=self.url_name("compare")),
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
            document = parse(request.POST.get("definition", ""))
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
        versions = list(definition_siblings(definition=obj).only("id", "version", "status")[:LISTED])
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
            choices=[(f"version:{row.id}", f"version {row.version} ({row.status})") for row in versions]
            + [(f"revision:{number}", f"revision {number} of version {obj.version}") for number in revisions],
            before=before,
            after=after,
            sentences=words(diff(*documents)),
            lines=changed_lines(*documents),
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
