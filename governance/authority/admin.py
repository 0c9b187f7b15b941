"""The console's inbox "Waiting for a second person": proposals with a before and after, and the acts on them. Also what
other pages show when their act waits."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.decorators import display

from governance.authority.configured import confirm_drill_period
from governance.authority.errors import FreshSignInNeeded
from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS
from governance.authority.selectors import (
    authority_list,
    authority_standing,
    drill_report,
    forbidden_report,
    refusal_for,
)
from governance.authority.services.changes import Outcome, authority_confirm, authority_decline, authority_withdraw
from governance.authority.states import AuthorityState
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import document_differences
from governance.console.admin.lists import choice_filter
from governance.people.models import SignInLink, User
from governance.people.rules.combinations import FORBIDDEN
from governance.people.rules.roles import AUDIT
from governance.people.web.accounts import authenticated_at, step_up_url

WAITS = "Proposed. Nothing has changed yet: a second person has to confirm it."
LABELS = {
    "proposed": "warning",
    "in_force": "success",
    "declined": "danger",
    "withdrawn": "default",
    "lapsed": "default",
}


def change_url(change: AuthorityChange) -> str:
    return reverse("admin:governance_authoritychange_change", args=[change.id])


def waits_for_second(request: HttpRequest, outcome: Outcome) -> HttpResponse:
    """For a page whose act was proposed: its message, and the way to the proposal. What is shown once is shown now."""
    if outcome.once:
        return shown_once(request, outcome, back=change_url(outcome.change))
    messages.warning(request, WAITS)
    return HttpResponseRedirect(change_url(outcome.change))


def shown_once(request: HttpRequest, outcome: Outcome, *, back: str) -> HttpResponse:
    """The page with the clear text of a key or a link, for this one time."""
    made = outcome.applied.made if outcome.applied else None
    is_link = isinstance(made, User | SignInLink)
    context = {
        **admin.site.each_context(request),
        "title": "Shown once",
        "outcome": outcome,
        "change": outcome.change,
        # A link is without our own name if the installation does not know it. The request does.
        "secret": request.build_absolute_uri(outcome.once) if is_link else outcome.once,
        "person": made.user if isinstance(made, SignInLink) else made,
        "back": back,
        "waits": outcome.applied is None,
        "opts": AuthorityChange._meta,
    }
    response = render(request, f"admin/holdpoint/{'link' if is_link else 'authority'}_once.html", context)
    # The page has the secret in clear text: no browser or proxy cache may keep it.
    response["Cache-Control"] = "no-store"
    return response


def _confirm_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: AuthorityChange, data: dict[str, Any]
) -> HttpResponse | str:
    try:
        outcome = authority_confirm(
            actor=console_actor(request),
            at=timezone.now(),
            change_id=obj.id,
            authenticated_at=authenticated_at(request),
        )
    except FreshSignInNeeded:
        # Their sign-in is too old. They prove who they are and come back to this page.
        return HttpResponseRedirect(step_up_url(back=model_admin.act_url(obj, "confirm")))
    return shown_once(request, outcome, back=change_url(obj)) if outcome.once else "Confirmed. It is in force now."


def _decline_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: AuthorityChange, data: dict[str, Any]) -> str:
    authority_decline(actor=console_actor(request), at=timezone.now(), change_id=obj.id)
    return "Declined. Nothing has changed."


def _withdraw_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: AuthorityChange, data: dict[str, Any]) -> str:
    authority_withdraw(actor=console_actor(request), at=timezone.now(), change_id=obj.id)
    return "Withdrawn. Nothing has changed."


def _change_context(request: HttpRequest, obj: AuthorityChange) -> dict[str, Any]:
    user: Any = request.user
    waits = obj.state == AuthorityState.PROPOSED
    why = refusal_for(change=obj, user_id=user.pk) if waits else ""
    return {
        # Not `change`: Django's own page has a variable of this name, which says that it is no new row.
        "proposal": obj,
        "rule": ACTS[obj.kind],
        "differences": document_differences(obj.before, obj.after),
        "standing": authority_standing(change=obj) if waits else None,
        "why_not": why,
        "warning": why,
    }


def _confirm_context(request: HttpRequest, obj: AuthorityChange) -> dict[str, Any]:
    context = _change_context(request, obj)
    return context | {"blocked": bool(context["why_not"])}


def _waits(obj: AuthorityChange) -> bool:
    return obj.state == AuthorityState.PROPOSED


@admin.register(AuthorityChange)
class AuthorityChangeAdmin(ConsoleAdmin):
    view_permission = AUDIT
    list_display = ["what", "subject_shown", "state_shown", "founding_shown", "proposed_by", "proposed_at"]
    list_display += ["expires_at", "decided_by", "organization"]
    list_filter = [
        choice_filter("state", {state.value: state.value.replace("_", " ") for state in AuthorityState}, indexed=False),
        choice_filter("kind", {rule.kind: rule.title for rule in ACTS.values()}, indexed=False),
    ]
    search_fields = ["=id"]
    search_help_text = "The id of a proposal."
    fields = ["what", "state_shown", "organization", "proposed_by", "proposed_through", "note_shown", "proposed_at"]
    fields += ["expires_at", "decided_by", "decided_at", "founding_shown"]
    readonly_fields = fields
    list_before_template = "admin/holdpoint/authority_list.html"
    change_form_outer_after_template = "admin/holdpoint/authority.html"
    acts = [
        Act(
            "confirm",
            "Confirm",
            "It comes into force at once, in your name as the second person.",
            _confirm_act,
            available=_waits,
            template="admin/holdpoint/authority_confirm.html",
            context=_confirm_context,
        ),
        Act(
            "decline",
            "Decline",
            "Nothing changes. The proposal stays on the record as declined.",
            _decline_act,
            available=_waits,
        ),
        Act(
            "withdraw",
            "Withdraw",
            "For the person who proposed it. Nothing changes.",
            _withdraw_act,
            available=_waits,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuthorityChange]:
        return authority_list()

    def page_context(self, request: HttpRequest, obj: AuthorityChange) -> dict[str, Any]:
        return _change_context(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        more = {"acts_table": list(ACTS.values()), "report_url": self.page_url("report")}
        return super().changelist_view(request, (extra_context or {}) | more)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.report_view)
        return [path("report/", view, name=self.url_name("report")), *super().get_urls()]

    def report_view(self, request: HttpRequest) -> HttpResponse:
        """Who has roles that are forbidden together, and who has not shown that they can still confirm."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "Who could act alone",
            "opts": self.opts,
            "back": self.page_url("changelist"),
            "rows": forbidden_report(),
            "table": FORBIDDEN,
            "drills": drill_report(at=timezone.now(), within=confirm_drill_period()),
        }
        return render(request, "admin/holdpoint/authority_report.html", context)

    @admin.display(description="What")
    def what(self, obj: AuthorityChange) -> str:
        return ACTS[obj.kind].title

    @admin.display(description="About")
    def subject_shown(self, obj: AuthorityChange) -> str:
        return obj.about

    @display(description="State", label=LABELS)
    def state_shown(self, obj: AuthorityChange) -> str:
        return str(obj.state)

    @admin.display(description="Founding")
    def founding_shown(self, obj: AuthorityChange) -> str:
        # In words: the red cross of a flag that is off looks like a fault, and off is how it should be.
        return "by one person" if obj.founding else "-"

    @admin.display(description="Note")
    def note_shown(self, obj: AuthorityChange) -> str:
        return obj.note.text if obj.note else "-"
