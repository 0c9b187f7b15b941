"""Evidence bundles in the console: progress, download and verification, and the act that requests one."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.files.storage import storages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.evidence.api import evidence_file
from governance.evidence.models import EvidenceBundle
from governance.evidence.selectors import bundle_list, requester_name
from governance.evidence.services.bundles import evidence_verify
from governance.evidence.services.request import evidence_request
from governance.evidence.states import EvidenceKind, EvidenceState
from governance.people.rules.roles import AUDIT
from reasoncodes.base.errors import PROBLEMS, DomainError

LABELS = {
    "ready": "success",
    "failed": "danger",
    "refused": "danger",
    "altered": "danger",
    "erased": "warning",
    "building": "info",
    "requested": "info",
}
LINK = '<span class="hp"><a href="{}">{}</a></span>'
SUBJECT_PAGES = {
    EvidenceKind.ATTEMPT.value: "admin:attempts_attempt_change",
    EvidenceKind.INSTANCE.value: "admin:workflows_workflowinstance_change",
}


def evidence_act(kind: EvidenceKind) -> Act:
    """The button on the subject's own page."""

    def ask(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> HttpResponse:
        bundle, new = evidence_request(kind=kind, subject_id=obj.id, actor=console_actor(request), at=timezone.now())
        said = (
            ("Requested. Holdpoint builds it in the background.")
            if new
            else "This bundle is up to date: nothing was added to the record since it was built."
        )
        messages.success(request, said)
        return HttpResponseRedirect(reverse("admin:governance_evidencebundle_change", args=[bundle.id]))

    return Act(
        "evidence",
        "Build evidence",
        "Puts everything on record about this into one zip file: decisions, people, receipts, ledger entries with "
        "their proofs, and a report to read. Anybody can verify the file without Holdpoint. The ledger records who "
        "requested it.",
        ask,
    )


def _bundle_verify_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: EvidenceBundle, data: Any) -> HttpResponse:
    try:
        report = evidence_verify(bundle=obj, storage=storages["evidence"], at=timezone.now())
    except DomainError as refusal:
        messages.error(request, refusal.detail)
    else:
        for line in report.checked if report.valid else ():
            messages.success(request, f"Checked {line}.")
        for fault in report.faults:
            messages.error(request, fault)
    return HttpResponseRedirect(model_admin.page_url("change", obj.pk))


@admin.register(EvidenceBundle)
class EvidenceBundleAdmin(ConsoleAdmin):
    list_display = ["requested_at", "subject_shown", "state_shown", "size_shown", "checkpoint_size", "organization"]
    list_select_related = ["organization"]
    list_filter = [choice_filter("state", {state.value: state.value for state in EvidenceState})]
    search_fields = ["=id", "=subject_id", "=sha256"]
    search_help_text = "The id of a bundle, an attempt or a run, or a SHA-256."
    ordering = ["-id"]
    fields = [
        "state_shown",
        "subject_link",
        "who",
        "organization",
        "requested_at",
        "built_at",
        "size_shown",
        "hash_shown",
        "checkpoint_size",
        "problem_shown",
        "id",
    ]
    readonly_fields = fields
    view_permission = AUDIT
    read_subject = "evidence_bundle"
    change_form_outer_before_template = "admin/holdpoint/evidence.html"
    acts = [
        Act(
            "verify",
            "Verify",
            "Runs the bundle's own verifier on the stored file, and computes every decision in it again. Nothing is "
            "recorded unless the file was altered.",
            _bundle_verify_act,
            permission=AUDIT,
            available=lambda obj: obj.state == EvidenceState.READY,
        )
    ]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A bundle contains ledger entries, so it needs the auditor's permission, as the ledger does."""
        actor = console_actor(request, permission=AUDIT)
        if obj is None:
            return bool(actor.organization_ids) or request.user.is_superuser
        return obj.organization_id in actor.organization_ids or request.user.is_superuser

    def get_queryset(self, request: HttpRequest) -> QuerySet[EvidenceBundle]:
        rows = bundle_list().select_related("organization")
        if request.user.is_superuser:
            return rows
        return rows.filter(organization__in=console_actor(request, permission=AUDIT).organization_ids)

    def get_urls(self) -> list[URLPattern]:
        pages = {"download": self.download_view, "progress": self.progress_view}
        own = [
            path(f"<uuid:object_id>/{name}/", self.admin_site.admin_view(view), name=self.url_name(name))
            for name, view in pages.items()
        ]
        return [*own, *super().get_urls()]

    def page_links(self, request: HttpRequest, obj: EvidenceBundle) -> list[dict[str, Any]]:
        if obj.state != EvidenceState.READY or obj.altered_at is not None:
            return []
        return [{"title": "Download", "url": self.page_url("download", obj.pk), "primary": True}]

    def page_context(self, request: HttpRequest, obj: EvidenceBundle) -> dict[str, Any]:
        ended = obj.state not in {EvidenceState.REQUESTED, EvidenceState.BUILDING}
        return {"bundle": obj, "follows": "" if ended else self.page_url("progress", obj.pk)}

    def download_view(self, request: HttpRequest, object_id: UUID) -> HttpResponseBase:
        bundle = self.object_or_404(request, object_id)
        self.record_reading(request, bundle)
        try:
            return evidence_file(bundle)
        except DomainError as refusal:
            messages.error(request, refusal.detail)
            return HttpResponseRedirect(self.page_url("change", bundle.pk))

    def progress_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """The progress, for the page's script while the bundle is built."""
        bundle = self.object_or_404(request, object_id)
        return JsonResponse({"state": bundle.state, "progress": bundle.progress})

    @display(description="State", label=LABELS)
    def state_shown(self, obj: EvidenceBundle) -> str:
        return "altered" if obj.altered_at else str(obj.state)

    @admin.display(description="About")
    def subject_shown(self, obj: EvidenceBundle) -> str:
        return f"{obj.subject_kind} {obj.subject_id}"

    @admin.display(description="About")
    def subject_link(self, obj: EvidenceBundle) -> SafeString:
        address = reverse(SUBJECT_PAGES[obj.subject_kind], args=[obj.subject_id])
        return format_html(LINK, address, f"{obj.subject_kind} {obj.subject_id}")

    @admin.display(description="Asked for by")
    def who(self, obj: EvidenceBundle) -> str:
        return requester_name(bundle=obj)

    @admin.display(description="Size")
    def size_shown(self, obj: EvidenceBundle) -> str:
        return "–" if obj.size is None else filesizeformat(obj.size)

    @admin.display(description="SHA-256")
    def hash_shown(self, obj: EvidenceBundle) -> SafeString | str:
        return format_html('<span class="hp"><code>{}</code></span>', obj.sha256) if obj.sha256 else "not built yet"

    @admin.display(description="Problem")
    def problem_shown(self, obj: EvidenceBundle) -> SafeString | str:
        if not obj.problem:
            return "none"
        known = PROBLEMS.get(obj.problem)
        title = known.title if known else obj.problem
        return format_html(LINK, reverse("problem_page", args=[obj.problem]), title)
