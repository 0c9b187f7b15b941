"""Forms of webhook endpoints."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from governance.admin.forms import ConsoleForm
from governance.admin.retention_forms import WhereForm


class Patterns(forms.CharField):
    """One per line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label="Events",
            widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
            help_text="One per line: a name such as attempt.completed, a prefix such as attempt.*, or * for all.",
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return str(super().clean(value)).split()


def _url() -> forms.CharField:
    return forms.CharField(
        label="URL",
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text=(
            "An https address of a public host. Do not put a password into it: everybody who can open this page "
            "sees it."
        ),
    )


def _description() -> forms.CharField:
    return forms.CharField(required=False, max_length=120, widget=UnfoldAdminTextInputWidget)


class EndpointForm(WhereForm):
    url = _url()
    events = Patterns()
    description = _description()


class EndpointChangeForm(ConsoleForm):
    url = _url()
    events = Patterns()
    description = _description()


class RotateForm(forms.Form):
    hours = forms.IntegerField(
        label="Hours during which the old secret also signs",
        initial=24,
        min_value=0,
        max_value=720,
        widget=UnfoldAdminIntegerFieldWidget,
    )
