"""Forms of legal holds, purge, exports and deletions: which organization, what, and why."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.console.admin.base import console_actor
from governance.console.admin.forms import NOTE_LENGTH, ConsoleForm, intervention_choices
from governance.console.selectors.pages import organization_choices, people_in_scope
from governance.retention.rules import LAWFUL_REFUSALS
from governance.retention.states import HoldScope
from reasoncodes.codes import SYSTEM_CODES, Scope

SCOPE_WORDS = {
    HoldScope.CONTEXT: "One context reference",
    HoldScope.ATTEMPT: "One attempt, by its id",
    HoldScope.RUN: "One run, by its id",
    HoldScope.CONTRACT: "One contract, by its slug",
    HoldScope.PERSON: "One person, by their id",
    HoldScope.ORGANIZATION: "The whole organization",
}


def _note_field() -> forms.CharField:
    return forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the text.",
    )


class WhereForm(ConsoleForm):
    """The organization, among those that the person operates."""

    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        ids = console_actor(self.request).organization_ids if self.request else frozenset()
        fields["organization"].queryset = organization_choices(ids=ids)
        if "reason_code" in fields:
            fields["reason_code"].choices = intervention_choices(next(iter(ids)) if len(ids) == 1 else None)


class HoldForm(WhereForm):
    scope = forms.ChoiceField(
        label="What to keep",
        choices=[(scope.value, words) for scope, words in SCOPE_WORDS.items()],
        widget=UnfoldAdminSelectWidget,
    )
    target = forms.CharField(
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="The reference, id or slug. Leave it empty for the whole organization.",
    )
    authority_ref = forms.CharField(
        label="On whose authority",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="A reference to the case or letter that requires it.",
    )
    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = _note_field()


class PurgeForm(WhereForm):
    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = _note_field()


class ExportForm(WhereForm):
    context_ref = forms.CharField(
        label="Context reference",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="Leave it empty to export the whole organization.",
    )
    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = _note_field()


class DeletionForm(WhereForm):
    context_ref = forms.CharField(
        label="Context reference",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="Fill in this field or choose a person.",
    )
    person: Any = forms.ModelChoiceField(queryset=None, required=False, widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["person"].queryset = people_in_scope()


class RefusalForm(ConsoleForm):
    """Only lawful reasons."""

    reason_code = forms.ChoiceField(
        label="Reason",
        choices=[
            ("", "Choose a reason"),
            *(
                (one.code, f"{one.label} ({one.code})" + (", needs a note" if one.requires_note else ""))
                for one in SYSTEM_CODES
                if one.scope is Scope.DENIAL and one.code in LAWFUL_REFUSALS
            ),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    note = _note_field()
