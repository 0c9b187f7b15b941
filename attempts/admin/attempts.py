"""Attempts in the console: find one, see why nothing happens, withdraw it."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display

from attempts.admin.withdraw import WithdrawPages
from attempts.models import Attempt
from attempts.selectors.attempt import WAITS, attempt_receipts, attempt_timeline, attempts_waiting
from attempts.selectors.obstacles import attempt_obstacles
from attempts.selectors.search import attempt_matches
from attempts.services.attempt_cancel import attempt_cancel
from attempts.states import FINAL_STATES, AttemptState
from governance.admin.base import Act, ConsoleAdmin, console_actor
from governance.admin.evidence import evidence_act
from governance.admin.forms import ReasonForm
from governance.admin.json_text import pretty
from governance.admin.lists import choice_filter
from governance.ledger.actions import wording
from governance.selectors import people_behind
from governance.states import EvidenceKind

LABELS = {
    "approved-for-execution": "info",
    "review-required": "warning",
    "completed": "success",
    "preflight-denied": "danger",
    "failed-quarantined": "danger",
}


def cancel(model_admin: ConsoleAdmin, request: HttpRequest, obj: Attempt, data: dict[str, Any]) -> str:
    attempt_cancel(actor=console_actor(request), at=timezone.now(), attempt_id=obj.id, **data)
    return f"Withdrawn. It is on record as denied with the reason {data['reason_code']}."


class WaitsFilter(admin.SimpleListFilter):
    """Of those that have not ended; each choice has an index of just these rows."""

    title = "waits for"
    parameter_name = "waits"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(WAITS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return attempts_waiting(rows=queryset, what=self.value() or "")


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
    search_fields = ["id"]  # what is searched is in `matches`; this makes the box appear
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
        "patient_context_ref",
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
            cancel,
            ReasonForm,
            available=lambda obj: obj.state not in FINAL_STATES and obj.lease_token == 0,
            danger=True,
        ),
        evidence_act(EvidenceKind.ATTEMPT),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        rows = super().get_queryset(request).select_related("organization")
        return rows if self.is_list(request) else rows.select_related("caller", "decision")

    def matches(self, term: str) -> Q | None:
        return attempt_matches(term)

    @display(description="State", label=LABELS)
    def state_shown(self, obj: Attempt) -> str:
        return str(obj.state)

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
                    "what": wording(entry.action),
                    "reason_code": entry.reason_code,
                }
                for entry in entries
            ],
            "receipts": attempt_receipts(attempt=attempt),
        }
