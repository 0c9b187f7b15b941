"""Exports in the console: ask for one, see how far it is, download it."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.files.storage import storages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.forms import hash_text
from governance.admin.retention_forms import ExportForm
from governance.archive_response import archive_response
from governance.models import ExportRequest
from governance.roles import AUDIT
from governance.selectors import people_behind
from governance.selectors.retention import export_list
from governance.services.export import export_open, export_request
from governance.states import ExportState
from reasoncodes.errors import DomainError

LABELS = {"requested": "info", "ready": "success", "failed": "danger", "expired": "default", "overdue": "danger"}


def ask(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
    organization = data.pop("organization")
    actor = model_admin.require_operator(request, organization.id)
    row = export_request(actor=actor, at=timezone.now(), organization=organization, **data)
    return model_admin.done(request, row, "Requested. Holdpoint builds it in the background.")


@admin.register(ExportRequest)
class ExportRequestAdmin(ConsoleAdmin):
    view_permission = AUDIT
    read_subject = "export"
    addable = True
    list_display = ["about", "state_shown", "reason_code", "requested_at", "due_at", "expires_at", "organization"]
    list_filter = ["state"]
    search_fields = ["=id", "=commitment", "=sha256"]
    ordering = ["-id"]
    fields = [
        "about",
        "state_shown",
        "reason_code",
        "note",
        "who",
        "organization",
        "requested_at",
        "due_at",
        "ready_at",
        "expires_at",
        "size",
        "sha256_shown",
    ]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/export_list.html"
    change_form_outer_after_template = "admin/holdpoint/export.html"
    add_act = Act(
        "request",
        "Ask for an export",
        "Builds an archive of JSON files with everything about one context reference or the whole organization.",
        ask,
        ExportForm,
    )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<uuid:object_id>/progress/", view(self.progress_view), name=self.url_name("progress")),
            path("<uuid:object_id>/download/", view(self.download_view), name=self.url_name("download")),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ExportRequest]:
        return export_list().filter(organization_id__in=console_actor(request, permission=AUDIT).organization_ids)

    @admin.display(description="About")
    def about(self, obj: Any) -> str:
        if not obj.commitment:
            return "the whole organization"
        return obj.reference or "a context (reference erased)"

    @display(description="State", label=LABELS)
    def state_shown(self, obj: ExportRequest) -> str:
        late = obj.state in {ExportState.REQUESTED, ExportState.FAILED} and obj.due_at <= timezone.now()
        return "overdue" if late else str(obj.state)

    @admin.display(description="SHA-256")
    def sha256_shown(self, obj: ExportRequest) -> SafeString:
        return hash_text(obj.sha256)

    @admin.display(description="Asked for by")
    def who(self, obj: ExportRequest) -> str:
        return people_behind(commitments={obj.requested_by_ref}).get(obj.requested_by_ref, obj.requested_by_kind)

    def page_links(self, request: HttpRequest, obj: ExportRequest) -> list[dict[str, Any]]:
        if obj.state != ExportState.READY:
            return []
        return [{"title": "Download", "url": self.page_url("download", obj.pk), "primary": True}]

    def page_context(self, request: HttpRequest, obj: ExportRequest) -> dict[str, Any]:
        return {"building": obj.state == ExportState.REQUESTED, "progress_url": self.page_url("progress", obj.pk)}

    def progress_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        row: ExportRequest = self.object_or_404(request, object_id)
        finished = row.state != ExportState.REQUESTED
        waiting = max(row.total - row.done, 0)
        return JsonResponse(
            {"total": row.total, "done": row.done, "refused": 0, "waiting": waiting, "finished": finished}
        )

    def download_view(self, request: HttpRequest, object_id: UUID) -> Any:
        row = self.object_or_404(request, object_id)
        actor = console_actor(request, permission=AUDIT)
        if not actor.may_act_in(row.organization_id):
            raise PermissionDenied
        self.record_reading(request, row)
        try:
            opened, stream = export_open(actor=actor, at=timezone.now(), export_id=row.id, storage=storages["exports"])
        except DomainError as refusal:
            return HttpResponse(refusal.detail, status=refusal.status, content_type="text/plain")
        return archive_response(row=opened, stream=stream)
