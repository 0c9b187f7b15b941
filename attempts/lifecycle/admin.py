"""Console pages of attempts: find one, see what it waits for, withdraw one or many."""

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.decorators import display

from attempts.execution.selectors import attempt_obstacles
from attempts.intake.selectors import replay_possible
from attempts.intake.services.follow_up import (
    AT_ONCE,
    ReplayOrder,
    attempt_cancel,
    attempt_replay_by_person,
    attempts_cancel,
    attempts_preview,
)
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import (
    WAITS,
    attempt_matches,
    attempt_receipts,
    attempt_timeline,
    attempts_waiting,
    patient_context_said,
)
from attempts.lifecycle.states import FINAL_STATES, AttemptState, PatientContext
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ReasonForm, pretty
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import uuid_or_none
from governance.evidence.admin import evidence_act
from governance.evidence.states import EvidenceKind
from governance.ledger.rules.actions import wording
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import people_behind
from reasoncodes.base.errors import DomainError
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import trace_or_new


class WithdrawPages(ConsoleAdmin):
    actions = ["withdraw_selected"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.withdraw_view)
        return [path("withdraw/", view, name=self.url_name("withdraw")), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> Any:
        return super().get_actions(request) if self._operates(request) else {}

    @admin.action(description="Withdraw the chosen attempts")
    def withdraw_selected(self, request: HttpRequest, queryset: QuerySet[Attempt]) -> HttpResponse:
        """Opens the page that shows what would happen. Changes nothing."""
        ids = [str(row.pk) for row in queryset[: AT_ONCE + 1]]
        if len(ids) > AT_ONCE:
            messages.error(request, f"Choose at most {AT_ONCE} attempts.")
            return HttpResponseRedirect(self.page_url("changelist"))
        return HttpResponseRedirect(f"{self.page_url('withdraw')}?ids={','.join(ids)}")

    def withdraw_view(self, request: HttpRequest) -> HttpResponse:
        if not self._operates(request):
            raise PermissionDenied
        ids = [id_ for one in request.GET.get("ids", "").split(",") if (id_ := uuid_or_none(one))]
        preview = attempts_preview(attempt_ids=ids)
        if len({one.attempt.organization_id for one in preview}) != 1:
            messages.error(request, "Choose attempts of one organization.")
            return HttpResponseRedirect(self.page_url("changelist"))
        first = preview[0].attempt
        self.require_operator(request, first.organization_id)
        form = ReasonForm(request.POST if request.method == "POST" else None, obj=first, request=request)
        if request.method == "POST" and form.is_valid():
            try:
                return self._done(request, ids, form.cleaned_data)
            except DomainError as refusal:
                form.add_error(None, " ".join([refusal.detail, *(one.message for one in refusal.errors)]))
        possible = sum(not one.refusal for one in preview)
        return self._page(request, {"form": form, "items": preview, "possible": possible, "step": "preview"})

    def _done(self, request: HttpRequest, ids: list[UUID], data: dict[str, Any]) -> HttpResponse:
        results = attempts_cancel(actor=console_actor(request), at=timezone.now(), attempt_ids=ids, **data)
        done = sum(not one.refusal for one in results)
        return self._page(request, {"items": results, "done": done, "step": "done"})

    def _page(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "title": "Withdraw attempts", "opts": self.opts}
        shared["back"] = self.page_url("changelist")
        return render(request, "admin/holdpoint/withdraw.html", shared | context)


REPLAY = "replay"
LABELS = {
    "approved-for-execution": "info",
    "review-required": "warning",
    "completed": "success",
    "preflight-denied": "danger",
    "failed-quarantined": "danger",
}


def _attempt_cancel_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Attempt, data: dict[str, Any]) -> str:
    attempt_cancel(actor=console_actor(request), at=timezone.now(), attempt_id=obj.id, **data)
    return f"Withdrawn. It is on record as denied with the reason {data['reason_code']}."


class ReplayForm(forms.Form):
    """The key of the new attempt, made with the page: a form that is posted twice is one replay."""

    key = forms.CharField(max_length=200, widget=forms.HiddenInput)


def _attempt_replay_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Attempt, data: dict[str, Any]) -> str:
    order = ReplayOrder(
        key=data["key"],
        trace=trace_or_new(),
        deployment_region=settings.DEPLOYMENT_REGION,
        base_url=request.build_absolute_uri("/").rstrip("/"),
    )
    actor = console_actor(request, permission=VIEW)
    answer = attempt_replay_by_person(actor=actor, at=timezone.now(), attempt=obj, order=order)
    denied = " It was denied, and the denial is on record." if answer.status >= 400 else ""
    return f"Asked again. The new attempt is {answer.attempt_id}.{denied}"


class WaitsFilter(admin.SimpleListFilter):
    """What an attempt waits for. Each choice has a partial index."""

    title = "waits for"
    parameter_name = "waits"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(WAITS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return attempts_waiting(rows=queryset, what=self.value() or "")


CONTEXT_WORDS = {
    PatientContext.ABSENT: "none given",
    PatientContext.NOT_APPLICABLE: "not applicable, declared by the contract",
}


@admin.register(Attempt)
class AttemptAdmin(WithdrawPages):
    read_subject = "attempt"
    list_display = ["id", "state_shown", "workflow_slug", "operation", "risk_tier", "reason_code", "created_at"]
    list_filter = [
        choice_filter("state", {state.value: state.value for state in AttemptState}),
        WaitsFilter,
        choice_filter("risk_tier", {"low": "low", "medium": "medium", "high": "high"}, indexed=False),
    ]
    hot = True
    search_fields = ["id"]  # only makes the search box appear; the search itself is `matches`
    search_help_text = "The full id of an attempt, a trace id or an idempotency key."
    ordering = ["-id"]
    fields = [
        "state_shown",
        "reason_code",
        "workflow_slug",
        "contract_version",
        "caller",
        "runtime_mode",
        "connector",
        "operation",
        "target_ref",
        "effect",
        "risk_tier",
        "payload_ref",
        "fields_shown",
        "patient_context",
        "idempotency_key",
        "request_trace_id",
        "metadata_shown",
        "tries",
        "lease_owner",
        "lease_expires_at",
        "next_eligible_at",
        "decision",
        "retry_of",
        "compensates",
        "created_at",
        "ended_at",
        "retention_until",
        "erased_at",
    ]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/attempt.html"
    acts = [
        Act(
            "cancel",
            "Withdraw",
            "Denies the attempt before anything runs, and ends its hold. You cannot withdraw an attempt after its "
            "first lease.",
            _attempt_cancel_act,
            ReasonForm,
            available=lambda obj: obj.state not in FINAL_STATES and obj.lease_token == 0,
            danger=True,
        ),
        Act(
            REPLAY,
            "Ask again",
            "A new attempt with the same content goes through the same checks, in the name of the service that asked "
            "first. You cannot review it yourself. This attempt stays as it is.",
            _attempt_replay_act,
            ReplayForm,
            permission=VIEW,
            initial=lambda obj: {"key": f"replay-{uuid7()}"},
        ),
        evidence_act(EvidenceKind.ATTEMPT),
    ]

    def _links(self, request: HttpRequest, obj: Attempt) -> list[dict[str, Any]]:
        """Whoever has the role that the contract names gets the button to replay; nobody else does."""
        user: Any = request.user
        links = super()._links(request, obj)
        if replay_possible(attempt=obj, person_id=user.pk):
            return links
        return [link for link in links if link["url"] != self.act_url(obj, REPLAY)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        rows = super().get_queryset(request).select_related("organization")
        return rows if self.is_list(request) else rows.select_related("caller", "contract", "decision")

    def matches(self, term: str) -> Q | None:
        return attempt_matches(term)

    @display(description="State", label=LABELS)
    def state_shown(self, obj: Attempt) -> str:
        return str(obj.state)

    @admin.display(description="Patient context")
    def patient_context(self, obj: Attempt) -> str:
        said = patient_context_said(attempt=obj)
        return obj.patient_context_ref if said is PatientContext.GIVEN else CONTEXT_WORDS[said]

    @admin.display(description="Fields written")
    def fields_shown(self, obj: Attempt) -> str:
        return ", ".join(obj.fields) or "none named"

    @admin.display(description="Metadata")
    def metadata_shown(self, obj: Attempt) -> Any:
        return pretty(obj.metadata)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        obj = self.get_object(request, object_id)
        story = self._story(obj) if obj is not None else {}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | story)

    @staticmethod
    def _story(attempt: Attempt) -> dict[str, Any]:
        entries = attempt_timeline(attempt=attempt)
        people = people_behind(commitments={entry.actor_ref for entry in entries if entry.actor_kind == "person"})
        return {
            "obstacles": attempt_obstacles(attempt=attempt, at=timezone.now()),
            "timeline": [
                {
                    "at": entry.at,
                    "who": people.get(entry.actor_ref, entry.actor_kind),
                    "what": wording(move.action),
                    "reason_code": move.reason_code,
                }
                for entry in entries
                for move in entry.moves
            ],
            "receipts": attempt_receipts(attempt=attempt),
        }
