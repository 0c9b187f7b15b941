"""Proposed shutdowns in the console: the evidence, and one button."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from attempts.proposals.models import ShutdownProposal
from attempts.proposals.services import proposal_dismiss, proposal_engage
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import NOTE_LENGTH
from governance.people.selectors.people import people_behind

STATE_LABELS = {"open": "danger", "engaged": "default", "dismissed": "default"}


class DismissForm(forms.Form):
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=(
            "Why it may go on. Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the "
            "text."
        ),
    )


def _engage_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ShutdownProposal, data: dict[str, Any]
) -> HttpResponse:
    shutdown = proposal_engage(actor=console_actor(request), at=timezone.now(), proposal_id=obj.id)
    return HttpResponseRedirect(reverse("admin:governance_shutdown_change", args=[shutdown.id]))


def _dismiss_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: ShutdownProposal, data: dict[str, Any]) -> str:
    proposal_dismiss(actor=console_actor(request), at=timezone.now(), proposal_id=obj.id, note=data["note"])
    return "Dismissed. Only failures from now on lead to another proposal."


def _moment(text: str) -> str:
    return text[:19].replace("T", " ") + " UTC"


def _is_open(obj: ShutdownProposal) -> bool:
    return not hasattr(obj, "answer")


@admin.register(ShutdownProposal)
class ShutdownProposalAdmin(ConsoleAdmin):
    list_display = ["contract", "state_shown", "cases", "at", "organization"]
    list_select_related = ["contract", "organization", "answer"]
    search_fields = ["=id"]
    fields = ["contract", "state_shown", "rule", "cases", "categories", "first", "last", "newest", "organization"]
    fields += ["answered_by", "answered_at", "note"]
    readonly_fields = fields
    acts = [
        Act(
            "engage",
            "Shut the contract down",
            "No attempt of this contract version is accepted from the next request on, and nothing of it is sent any "
            "more. A second person has to release it.",
            _engage_act,
            available=_is_open,
            danger=True,
        ),
        Act(
            "dismiss",
            "Dismiss",
            "The contract goes on. The failures so far are not proposed again; new ones are counted from now on.",
            _dismiss_act,
            DismissForm,
            available=_is_open,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ShutdownProposal]:
        return super().get_queryset(request).select_related("organization", "contract", "answer__note")

    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: ShutdownProposal) -> str:
        return "open" if _is_open(obj) else str(obj.answer.verdict)

    @admin.display(description="The contract's rule")
    def rule(self, obj: ShutdownProposal) -> str:
        return f"{obj.after} quarantine cases within {obj.window_seconds} seconds"

    @admin.display(description="Quarantine cases")
    def cases(self, obj: ShutdownProposal) -> int:
        return int(obj.evidence["cases"])

    @admin.display(description="Categories")
    def categories(self, obj: ShutdownProposal) -> str:
        return ", ".join(f"{number} {name}" for name, number in obj.evidence["categories"].items())

    @admin.display(description="First case")
    def first(self, obj: ShutdownProposal) -> str:
        return _moment(obj.evidence["first"])

    @admin.display(description="Last case")
    def last(self, obj: ShutdownProposal) -> str:
        return _moment(obj.evidence["last"])

    @admin.display(description="Newest cases")
    def newest(self, obj: ShutdownProposal) -> SafeString:
        rows = ((reverse("admin:attempts_quarantinecase_change", args=[id_]), id_) for id_ in obj.evidence["newest"])
        return format_html_join(" ", '<a href="{}">{}</a>', rows)

    @admin.display(description="Answered by", empty_value="-")
    def answered_by(self, obj: ShutdownProposal) -> str | None:
        if _is_open(obj):
            return None
        known = people_behind(commitments={obj.answer.by_ref})
        return known.get(obj.answer.by_ref, f"{obj.answer.by_kind} {obj.answer.by_ref[:12]}")

    @admin.display(description="Answered at", empty_value="-")
    def answered_at(self, obj: ShutdownProposal) -> Any:
        return None if _is_open(obj) else obj.answer.at

    @admin.display(description="Note", empty_value="-")
    def note(self, obj: ShutdownProposal) -> str | None:
        found = None if _is_open(obj) else obj.answer.note
        return found.text if found else None
