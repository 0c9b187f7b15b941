"""What many runs are chosen by, and why; both steps of a bulk intervention."""

from typing import Any
from uuid import UUID

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.admin.base import console_actor
from governance.admin.forms import NOTE_LENGTH, ConsoleForm, intervention_choices
from governance.selectors.choices import organization_choices
from workflows.admin.run_words import ACTION_NAMES
from workflows.selectors.bulk import Targets
from workflows.selectors.definition import definition_list
from workflows.selectors.run_console import halt_reasons
from workflows.states import InstanceStatus, Mode

ANY = ("", "any")
MOST_IDS = 90  # they go in the address, of which the web server takes 4 KiB


class ChooseForm(ConsoleForm):
    """First step, sent with GET: it changes nothing. `ids` are the runs that were ticked in the list."""

    action = forms.ChoiceField(
        choices=list(ACTION_NAMES.items()),
        widget=UnfoldAdminSelectWidget,
        label="What to do",
    )
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    status = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    halt_reason = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    definition = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    mode = forms.ChoiceField(required=False, choices=[], widget=UnfoldAdminSelectWidget)
    created_before = forms.DateTimeField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="In UTC, for example 2026-11-16 09:30. Leave it empty to include all runs until now.",
    )
    ids = forms.CharField(required=False, widget=forms.HiddenInput, max_length=MOST_IDS * 37)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        ids = console_actor(self.request).organization_ids if self.request else ()
        fields["organization"].queryset = organization_choices(ids=ids)
        fields["status"].choices = [ANY, *((one.value, one.value.replace("_", " ")) for one in InstanceStatus)]
        fields["mode"].choices = [ANY, *((one.value, one.value.replace("_", " ")) for one in Mode)]
        fields["halt_reason"].choices = [ANY, *((code, code) for code in halt_reasons())]
        rows = definition_list().exclude(contract=None).order_by("-id")[:50]
        fields["definition"].choices = [ANY, *((str(row.id), f"{row.slug} v{row.version}") for row in rows)]
        if self.data.get("ids") or self.initial.get("ids"):
            for name in ("status", "halt_reason", "definition", "mode", "created_before"):
                del fields[name]

    def clean_ids(self) -> list[UUID]:
        try:
            return [UUID(one) for one in self.cleaned_data["ids"].split(",") if one]
        except ValueError:
            raise forms.ValidationError("Enter valid run ids.") from None

    def targets(self) -> Targets:
        data = self.cleaned_data
        if data["ids"]:
            return Targets(instance_ids=data["ids"])
        given = {name: data[name] for name in ("status", "halt_reason", "mode", "created_before")}
        given["definition_id"] = UUID(data["definition"]) if data["definition"] else None
        return Targets(filter={name: value for name, value in given.items() if value})

    def said(self) -> list[tuple[str, str]]:
        """The choice in words, for the second step."""
        if self.cleaned_data["ids"]:
            return [("Runs", f"the {len(self.cleaned_data['ids'])} that you chose")]
        names = {"status": "Status", "halt_reason": "Halted because", "mode": "Mode"}
        found = [(words, str(self.cleaned_data[name])) for name, words in names.items() if self.cleaned_data[name]]
        if until := self.cleaned_data["created_before"]:
            found.append(("Created before", f"{until:%Y-%m-%d %H:%M:%S} UTC"))
        field: Any = self.fields["definition"]
        named = dict(field.choices).get(self.cleaned_data["definition"], "")
        return [*found, ("Definition", str(named))] if self.cleaned_data["definition"] else found


class OrderForm(forms.Form):
    """Second step, posted."""

    reason_code = forms.ChoiceField(label="Reason", choices=[], widget=UnfoldAdminSelectWidget)
    note = forms.CharField(
        required=False,
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Up to 280 characters. Do not enter names, patient data or secrets: Holdpoint checks the text.",
    )

    def __init__(self, *args: Any, organization_id: UUID, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["reason_code"]
        field.choices = intervention_choices(organization_id)
