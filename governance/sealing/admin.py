"""The console's pages on the record: checks on demand with their progress, witnesses and epochs, the read audit."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_POST
from unfold.decorators import display

from governance.console.admin.base import ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.console.selectors.pages import with_names
from governance.people.rules.roles import AUDIT
from governance.people.selectors.people import people_behind
from governance.sealing.configured import cosigners_configured, witness_quorum, witnesses_configured
from governance.sealing.models import LedgerVerification, ReadAccess, WitnessReceipt
from governance.sealing.selectors.cosignatures import quorum_standing
from governance.sealing.selectors.keys import ledger_key_history
from governance.sealing.selectors.tree import checkpoint_latest, sealer_lag
from governance.sealing.selectors.witnesses import epoch_current, epoch_list, ledger_denial, witness_standing
from governance.sealing.services.verification import PATIENCE, verification_ask

RESULT_LABELS = {"stored": "success", "failed": "warning", "refused": "danger"}


class InstallationAdmin(ConsoleAdmin):
    """Rows of the installation, not of an organization. They name entries by id only, so every auditor may see them."""

    view_permission = AUDIT

    def organization_id_of(self, obj: Any) -> None:
        return None


@admin.register(LedgerVerification)
class LedgerVerificationAdmin(InstallationAdmin):
    list_display = ["asked_at", "state", "done", "faults", "asked_by", "finished_at"]
    fields = ["asked_at", "asked_by", "state", "done", "total", "finished_at"]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/verification.html"
    list_before_template = "admin/holdpoint/verification_list.html"

    def get_urls(self) -> list[URLPattern]:
        ask = self.admin_site.admin_view(require_POST(self.ask_view))
        follow = self.admin_site.admin_view(self.progress_view)
        return [
            path("ask/", ask, name=self.url_name("ask")),
            path("<uuid:object_id>/progress/", follow, name=self.url_name("progress")),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, (extra_context or {}) | {"may_ask": self._operates(request)})

    def progress_view(self, request: HttpRequest, object_id: UUID) -> JsonResponse:
        context = self.page_context(request, obj := self.object_or_404(request, object_id))
        return JsonResponse({"done": obj.done, "total": obj.total} | {k: context[k] for k in ("share", "waiting")})

    def ask_view(self, request: HttpRequest) -> HttpResponse:
        """Starts a check in the background, or shows the one that is running."""
        if not self._operates(request):
            raise PermissionDenied
        asked = verification_ask(actor=console_actor(request, permission=AUDIT), at=timezone.now())
        messages.success(request, "The check runs in the background. This page shows its progress.")
        return HttpResponseRedirect(self.page_url("change", asked.id))

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        share = int(100 * obj.done / obj.total) if obj.total else 0
        return {"share": share, "found": obj.found, "waiting": obj.finished_at is None and not self._stale(obj)}

    @staticmethod
    def _stale(obj: LedgerVerification) -> bool:
        return obj.finished_at is None and obj.touched_at < timezone.now() - PATIENCE

    @display(description="State", label={"fits": "success", "does not fit": "danger", "stopped": "warning"})
    def state(self, obj: LedgerVerification) -> str:
        if obj.finished_at is None:
            return "stopped" if self._stale(obj) else "under way"
        return "fits" if obj.found.get("valid") else "does not fit"

    @admin.display(description="Faults")
    def faults(self, obj: LedgerVerification) -> str:
        return str(obj.found.get("faults", ""))

    @admin.display(description="Asked by")
    def asked_by(self, obj: LedgerVerification) -> str:
        return people_behind(commitments={obj.asked_by_ref}).get(obj.asked_by_ref, "erased")


@admin.register(WitnessReceipt)
class WitnessReceiptAdmin(InstallationAdmin):
    """The answers of witnesses, and above the list the progress of each."""

    list_display = ["at", "witness", "size", "result_shown", "detail"]
    search_fields = ["=witness"]
    ordering = ["-id"]
    fields = ["at", "witness", "size", "result_shown", "detail", "cosignature"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/witness_list.html"

    @display(description="Answer", label=RESULT_LABELS)
    def result_shown(self, obj: WitnessReceipt) -> str:
        return obj.result

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, (extra_context or {}) | self._standing())

    @staticmethod
    def _standing() -> dict[str, Any]:
        now = timezone.now()
        limits = {"heads": settings.WITNESS_LIMIT_HEADS, "seconds": settings.WITNESS_LIMIT_SECONDS}
        standings = [witness_standing(witness=one.name) for one in witnesses_configured()]
        cosigners = cosigners_configured()
        quorum = quorum_standing(cosigners=cosigners, wanted=witness_quorum())
        return {
            "cosigners": {one.name for one in cosigners},
            "quorum": quorum,
            "quorum_missing": quorum and quorum.missing(at=now, seconds=settings.WITNESS_LIMIT_SECONDS),
            "quorum_lag": round(quorum.lag(at=now)) if quorum else 0,
            "denial": ledger_denial(),
            "witnesses": [(one, round(one.lag(at=now)), one.alarming(at=now, **limits)) for one in standings],
            "head": checkpoint_latest(),
            "lag": sealer_lag(at=now),
            "keys": ledger_key_history(),
            "epoch": epoch_current(),
            "epochs": epoch_list(),
        }


KINDS = {kind: kind for kind in ("attempt", "review", "evidence_bundle", "export")}


@admin.register(ReadAccess)
class ReadAccessAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["at", "who", "subject_kind", "subject_id", "door", "purpose", "organization"]
    list_select_related = ["organization"]
    list_filter = [choice_filter("subject_kind", KINDS), choice_filter("door", {"api": "API", "console": "console"})]
    search_fields = ["=subject_id", "=request_id", "=actor_ref"]
    search_help_text = "The id of the opened record, of a request or of a service, or a person's reference."
    fields = ["at", "who", "subject_kind", "subject_id", "door", "purpose", "request_id", "organization"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReadAccess]:
        rows = super().get_queryset(request)
        if not request.user.is_superuser:
            rows = rows.filter(organization__in=console_actor(request, permission=AUDIT).organization_ids)
        return with_names(rows=rows)

    @admin.display(description="Who")
    def who(self, obj: Any) -> str:
        if obj.actor_kind == "person":
            return obj.username or "a person (reference erased)"
        return f"service {obj.actor_ref}" if obj.actor_ref else obj.actor_kind
