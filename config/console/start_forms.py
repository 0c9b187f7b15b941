"""The forms of Getting started: few fields, and defaults that work."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminEmailInputWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextInputWidget,
)

from governance.contracts.rules.documents import OWNER_GROUPS
from governance.contracts.rules.starters import REVIEWER, STARTERS

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
ROLE_SETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "owner": ("Owner of all ten areas: approves contracts", tuple(f"owner:{group}" for group in OWNER_GROUPS)),
    "reviewer": ("Reviewer: releases or rejects held actions", (f"reviewer:{REVIEWER}",)),
    "operator": ("Operator: sets up and intervenes", ("operator",)),
    "auditor": ("Auditor: reads everything, changes nothing", ("auditor",)),
}


class FirstPersonForm(forms.Form):
    username = forms.RegexField(
        r"^[\w.@+-]{1,150}$", widget=UnfoldAdminTextInputWidget, help_text="Letters, digits and @ . + - _ only."
    )
    email = forms.EmailField(
        label="Mail address",
        required=False,
        widget=UnfoldAdminEmailInputWidget,
        help_text="Their invitation goes there. Without it the next page shows you the link, once.",
    )
    roles = forms.MultipleChoiceField(
        choices=[(name, words) for name, (words, _) in ROLE_SETS.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="In a larger organization the nine owning groups are different people. You can change roles later.",
    )


class AccountForm(forms.Form):
    slug = forms.RegexField(
        SLUG, initial="caller", widget=UnfoldAdminTextInputWidget, help_text="Lower-case letters, digits and dashes."
    )
    description = forms.CharField(required=False, max_length=280, widget=UnfoldAdminTextInputWidget)


class StarterForm(forms.Form):
    starter = forms.ChoiceField(
        choices=[(one.name, f"{one.title}. {one.description}") for one in STARTERS],
        initial=STARTERS[0].name,
        widget=UnfoldAdminRadioSelectWidget,
    )
    slug = forms.RegexField(
        SLUG,
        initial="first-contract",
        widget=UnfoldAdminTextInputWidget,
        help_text="Part of the address that callers use. Lower-case letters, digits and dashes.",
    )


class CallForm(forms.Form):
    """No fields: the button issues a key that is valid for a day."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
