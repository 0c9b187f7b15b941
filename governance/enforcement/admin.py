"""Decisions in the console: read them, and evaluate one again."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from governance.console.admin.base import Act, ConsoleAdmin
from governance.console.admin.forms import pretty
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import by_id
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.rules import results_from_document
from governance.enforcement.services import decision_replay
from governance.people.rules.roles import AUDIT

VERDICT_LABELS = {"allow": "success", "held": "warning", "deny": "danger"}
VERDICT_WORDS = {"allow": "allow", "needs_approval": "held", "deny": "deny"}


def _decision_replay_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: EnforcementDecision, data: Any
) -> HttpResponse:
    found = decision_replay(row=obj)
    if found.agrees:
        messages.success(request, "Same result: the stored request and environment give the same decision again.")
    else:
        messages.error(request, "Differs in: " + ", ".join(found.differences))
    return HttpResponseRedirect(model_admin.page_url("change", obj.pk))


def code_html(text: str) -> SafeString:
    return format_html("<code>{}</code>", text)


@admin.register(EnforcementDecision)
class EnforcementDecisionAdmin(ConsoleAdmin):
    list_display = ["at", "verdict_shown", "reason_code", "rule_id", "contract", "policy_version", "organization"]
    list_select_related = ["contract", "organization"]
    list_filter = [choice_filter("verdict", VERDICT_WORDS, indexed=False)]
    hot = True
    search_fields = ["id"]
    search_help_text = "The id of a decision."
    fields = ["at", "verdict_shown", "reason_code", "rule_id", "contract", "policy_version", "approval_shown"]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/decision.html"
    acts = [
        Act(
            "re-evaluate",
            "Re-evaluate",
            "Computes the decision again from the stored request, environment and snapshots only, and compares the "
            "results. Nothing is recorded.",
            _decision_replay_act,
            permission=AUDIT,
        )
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[EnforcementDecision]:
        rows = super().get_queryset(request).select_related("contract", "organization")
        return rows.defer("request", "environment", "results") if self.is_list(request) else rows

    def matches(self, term: str) -> Q | None:
        return by_id(term)

    @display(description="Verdict", label=VERDICT_LABELS)
    def verdict_shown(self, obj: EnforcementDecision) -> str:
        return VERDICT_WORDS[obj.verdict]

    @admin.display(description="Approval")
    def approval_shown(self, obj: EnforcementDecision) -> str:
        if not obj.approval:
            return "none needed"
        hours = obj.approval["expires_in_seconds"] / 3600
        parts = obj.approval.get("buckets") or [obj.approval]
        people = " and ".join(f"{part['approvals_required']} of {part['tier']}" for part in parts)
        return f"{people}, within {hours:g} h"

    def page_context(self, request: HttpRequest, obj: EnforcementDecision) -> dict[str, Any]:
        results = results_from_document(obj.results)
        return {
            "results": [(result, VERDICT_WORDS[result.verdict.value]) for result in results],
            "request_text": pretty(obj.request),
            "environment_text": pretty(obj.environment),
        }
