"""Deletion requests (with the second person's decision) and exports in the console."""

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

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ReasonForm, hash_text
from governance.people.rules.roles import AUDIT
from governance.people.selectors.people import people_behind
from governance.retention.admin.forms import DeletionForm, ExportForm, RefusalForm
from governance.retention.api import archive_response
from governance.retention.models import DeletionRequest, ExportRequest
from governance.retention.selectors.retention import deletion_list, export_list
from governance.retention.services.deletion import deletion_accept, deletion_blockers, deletion_refuse, deletion_request
from governance.retention.services.export import export_open, export_request
from governance.retention.states import DeletionState, ExportState
from reasoncodes.base.errors import DomainError

DELETION_LABELS = {
    "requested": "info",
    "overdue": "danger",
    "accepted": "warning",
    "refused": "default",
    "done": "success",
}


def _deletion_ask_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
    organization, person = data["organization"], data["person"]
    row = deletion_request(
        actor=model_admin.require_operator(request, organization.id),
        at=timezone.now(),
        organization=organization,
        context_ref=data["context_ref"],
        person_id=person.id if person else None,
    )
    return model_admin.done(request, row, "Requested. Another person has to decide.")


def _deletion_accept_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: DeletionRequest, data: dict[str, Any]
) -> str:
    deletion_accept(actor=console_actor(request), at=timezone.now(), deletion_id=obj.id, **data)
    return "Accepted. The erasure is ordered and runs in the background."


def _deletion_refuse_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: DeletionRequest, data: dict[str, Any]
) -> str:
    deletion_refuse(actor=console_actor(request), at=timezone.now(), deletion_id=obj.id, **data)
    return "Refused. The reason is on record."


def blocked(request: HttpRequest, obj: DeletionRequest) -> dict[str, Any]:
    """For the page of the decision: how much would be erased, and what blocks it."""
    free, found = deletion_blockers(request=obj, at=timezone.now())
    return {"free": len(free), "found": found}


def _deletion_is_open(obj: DeletionRequest) -> bool:
    return obj.state == DeletionState.REQUESTED


@admin.register(DeletionRequest)
class DeletionRequestAdmin(ConsoleAdmin):
    view_permission = AUDIT
    addable = True
    list_display = ["whom", "state_shown", "requested_at", "due_at", "reason_code", "finished_at", "organization"]
    list_filter = ["state", "about"]
    search_fields = ["=id", "=commitment"]
    ordering = ["-id"]
    fields = [
        "whom",
        "state_shown",
        "commitment_shown",
        "organization",
        "asked_by",
        "requested_at",
        "due_at",
        "decided_by",
        "decided_at",
        "reason_code",
        "note",
        "order",
        "finished_at",
    ]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/deletion_list.html"
    add_act = Act(
        "request",
        "Ask for a deletion",
        "Requests the deletion of a context reference or a person. Another person has to decide by the due date of "
        "the regional profile.",
        _deletion_ask_act,
        DeletionForm,
    )
    acts = [
        Act(
            "accept",
            "Accept",
            "Orders the erasure. Payloads and references are erased, and the reference's salt is destroyed. Proofs "
            "stay valid.",
            _deletion_accept_act,
            ReasonForm,
            available=_deletion_is_open,
            danger=True,
            template="admin/holdpoint/deletion_decide.html",
            context=blocked,
        ),
        Act(
            "refuse",
            "Refuse",
            "Refuses the request with a lawful reason. The reason stays on record.",
            _deletion_refuse_act,
            RefusalForm,
            available=_deletion_is_open,
            template="admin/holdpoint/deletion_decide.html",
            context=blocked,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeletionRequest]:
        return deletion_list().filter(organization_id__in=console_actor(request, permission=AUDIT).organization_ids)

    @admin.display(description="About")
    def whom(self, obj: Any) -> str:
        known = obj.person if obj.about == "person" else obj.reference
        return f"{obj.about} {known}" if known else f"a {obj.about} (reference erased)"

    @display(description="State", label=DELETION_LABELS)
    def state_shown(self, obj: DeletionRequest) -> str:
        return "overdue" if _deletion_is_open(obj) and obj.due_at <= timezone.now() else str(obj.state)

    @admin.display(description="Commitment")
    def commitment_shown(self, obj: DeletionRequest) -> SafeString:
        return hash_text(obj.commitment)

    @admin.display(description="Asked for by")
    def asked_by(self, obj: DeletionRequest) -> str:
        return people_behind(commitments={obj.requested_by_ref}).get(obj.requested_by_ref, obj.requested_by_kind)

    @admin.display(description="Decided by")
    def decided_by(self, obj: DeletionRequest) -> str:
        return people_behind(commitments={obj.decided_by_ref}).get(obj.decided_by_ref, "–")


EXPORT_LABELS = {"requested": "info", "ready": "success", "failed": "danger", "expired": "default", "overdue": "danger"}


def _export_ask_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]) -> HttpResponse:
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
        _export_ask_act,
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

    @display(description="State", label=EXPORT_LABELS)
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
