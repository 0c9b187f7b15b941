"""Console pages of quarantine cases: a person says what happened, then what follows."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from attempts.intake.services.rows import IntakeAnswer
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.rules import next_acts
from attempts.quarantine.selectors import case_facts, case_sheet, cases_shown, may_act, owned_by
from attempts.quarantine.services.resolve import (
    ResolutionOrder,
    quarantine_accept,
    quarantine_authorize_retry,
    quarantine_compensate,
    quarantine_hand_over,
    quarantine_link_incident,
)
from attempts.quarantine.states import InvestigatedOutcome, QuarantineCategory
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.lists import choice_filter
from governance.console.selectors.lists import by_id
from governance.people.rules.roles import OPERATE, VIEW
from reasoncodes.base.actors import Actor
from reasoncodes.base.trace import trace_or_new


class EvidenceForm(forms.Form):
    """For an act that needs one certain finding: choosing the act says it."""

    evidence_ref = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="A reference to where this is documented.",
    )


class FindingForm(EvidenceForm):
    finding = forms.ChoiceField(
        choices=[("", "as found before"), *((f.value, f.value.replace("_", " ")) for f in InvestigatedOutcome)],
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="What you found out from the receiver.",
    )


class IncidentForm(forms.Form):
    incident_ref = forms.RegexField(
        r"^[A-Za-z0-9][A-Za-z0-9._:/#-]{0,199}$", widget=UnfoldAdminTextInputWidget, help_text="For example INC-17."
    )


def _resolution_from_form(request: HttpRequest, data: dict[str, Any], finding: str = "") -> ResolutionOrder:
    return ResolutionOrder(
        finding=data.get("finding", finding),
        evidence_ref=data["evidence_ref"],
        trace=trace_or_new(),
        deployment_region=settings.DEPLOYMENT_REGION,
        base_url=request.build_absolute_uri("/").rstrip("/"),
    )


def _actor(request: HttpRequest) -> Actor:
    """Everybody who may see the case: the service checks under its lock who may act on it."""
    return console_actor(request, permission=VIEW)


def _resolution_message(answer: IntakeAnswer, what: str) -> str:
    if answer.status >= 400:
        return "The new attempt was denied. The denial is on record, and the case stays open."
    return f"{what} The new attempt is {answer.attempt_id}."


def _case_accept_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: QuarantineCase, data: dict[str, Any]) -> str:
    quarantine_accept(
        actor=_actor(request), at=timezone.now(), case_id=obj.id, order=_resolution_from_form(request, data)
    )
    return "Accepted. The outcome stays as it is."


def _case_retry_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: QuarantineCase, data: dict[str, Any]) -> str:
    order = _resolution_from_form(request, data, InvestigatedOutcome.DID_NOT_HAPPEN)
    answer = quarantine_authorize_retry(actor=_actor(request), at=timezone.now(), case_id=obj.id, order=order)
    return _resolution_message(answer, "Authorized.")


def _case_compensate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: QuarantineCase, data: dict[str, Any]
) -> str:
    order = _resolution_from_form(request, data, InvestigatedOutcome.HAPPENED)
    answer = quarantine_compensate(actor=_actor(request), at=timezone.now(), case_id=obj.id, order=order)
    return _resolution_message(answer, "Compensating.")


def _case_incident_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: QuarantineCase, data: dict[str, Any]
) -> str:
    quarantine_link_incident(
        actor=_actor(request), at=timezone.now(), case_id=obj.id, incident_ref=data["incident_ref"]
    )
    return "Linked. The case stays open until somebody resolves it."


def _case_hand_over_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: QuarantineCase, data: dict[str, Any]
) -> str:
    quarantine_hand_over(actor=_actor(request), at=timezone.now(), case_id=obj.id)
    return "Handed over. The case is resolved; its incident decides what follows."


class MineFilter(admin.SimpleListFilter):
    title = "owner"
    parameter_name = "mine"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "my groups")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        user: Any = request.user
        return queryset.filter(owned_by(user_id=user.pk)) if self.value() == "yes" else queryset


class ResolvedFilter(admin.SimpleListFilter):
    """Without a choice, open cases are shown."""

    title = "state"
    parameter_name = "state"
    served_by_index = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "open"), ("resolved", "resolved")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


@admin.register(QuarantineCase)
class QuarantineCaseAdmin(ConsoleAdmin):
    list_display = ["category", "state_shown", "blocked", "reason_code", "escalation_owner", "escalate_at", "opened_at"]
    list_filter = [
        ResolvedFilter,
        MineFilter,
        choice_filter("category", {category.value: category.value for category in QuarantineCategory}, indexed=False),
    ]
    hot = True
    change_form_outer_after_template = "admin/holdpoint/case.html"
    search_fields = ["id"]
    search_help_text = "The id of a case or of its attempt."
    ordering = ["-id"]
    fields = [
        "category",
        "state_shown",
        "reason_code",
        "attempt",
        "blocked",
        "escalation_owner",
        "escalate_at",
        "escalated_at",
        "incident_ref",
        "finding",
        "evidence_ref",
        "resolution",
        "resolved_at",
        "follow_up",
        "opened_at",
    ]
    readonly_fields = fields
    acts = [
        Act(
            "authorize-retry",
            "Authorize a retry",
            "You say with it that it did not happen. A new attempt goes through the same checks. This "
            "attempt stays failed.",
            _case_retry_act,
            EvidenceForm,
        ),
        Act(
            "compensate",
            "Compensate",
            "You say with it that it happened. A new attempt goes through the checks of the compensation contract.",
            _case_compensate_act,
            EvidenceForm,
        ),
        Act(
            "accept",
            "Accept",
            "The outcome stays as it is, and the case is resolved. Nothing more happens.",
            _case_accept_act,
            FindingForm,
        ),
        Act(
            "hand-over",
            "Hand over to the incident",
            "The linked incident decides what follows, outside Holdpoint. The case is resolved, also if nobody knows "
            "yet what happened. Nothing is sent again.",
            _case_hand_over_act,
        ),
        Act(
            "link-incident",
            "Link an incident",
            "Links an incident to the case. The case stays open.",
            _case_incident_act,
            IncidentForm,
        ),
    ]

    def _operates(self, request: HttpRequest, obj: Any = None, *, permission: str = OPERATE) -> bool:
        """Operators, and members of the case's own group."""
        if super()._operates(request, obj, permission=permission):
            return True
        user: Any = request.user
        return isinstance(obj, QuarantineCase) and may_act(user_id=user.pk, case=obj)

    def _links(self, request: HttpRequest, obj: QuarantineCase) -> list[dict[str, Any]]:
        """Only acts that can succeed now, for this person: a button that can only fail is not shown."""
        user: Any = request.user
        facts = case_facts(case=obj, attempt=obj.attempt, reader=user.pk)
        possible = {self.act_url(obj, act.verb) for act in next_acts(facts)}
        return [link for link in super()._links(request, obj) if link["url"] in possible]

    def get_fields(self, request: HttpRequest, obj: QuarantineCase | None = None) -> list[str]:
        """Only what is known of the case: a row that says nothing hides those that do."""
        return [name for name in self.fields if obj is None or getattr(obj, name, True)]

    def page_context(self, request: HttpRequest, obj: QuarantineCase) -> dict[str, Any]:
        reader: Any = request.user
        return {"sheet": case_sheet(case=obj, now=timezone.now(), reader=reader.pk)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuarantineCase]:
        # Not joined: no foreign key names the caller, so the planner expects few rows and would sort them all.
        rows = super().get_queryset(request).select_related("attempt", "organization")
        rows = rows.prefetch_related("attempt__contract", "attempt__caller")
        if not self.is_list(request) or request.GET.get("q"):
            return rows
        return cases_shown(rows=rows, which=request.GET.get("state", ""))

    def matches(self, term: str) -> Q | None:
        return by_id(term, "id", "attempt_id")

    @display(description="State", label={"open": "danger", "resolved": "success"})
    def state_shown(self, obj: QuarantineCase) -> str:
        return "resolved" if obj.resolution else "open"

    @admin.display(description="Blocked until resolved")
    def blocked(self, obj: QuarantineCase) -> str:
        return f"{obj.attempt.connector} {obj.attempt.operation} on {obj.attempt.target_ref}"
