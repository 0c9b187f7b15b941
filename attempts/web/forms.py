"""The shape of what people post. What it means is the services' matter."""

from typing import Any

from django import forms
from django.http import QueryDict

from attempts.services.review_delegate import LONGEST_HOURS
from reasoncodes.errors import FieldError, InvalidInput


class WordForm(forms.Form):
    action_digest = forms.CharField(max_length=64)
    reason_code = forms.CharField(max_length=64, required=False)
    note = forms.CharField(max_length=280, required=False)


class OverrideForm(WordForm):
    result_ref = forms.CharField(max_length=200, required=False)
    payload_sha256 = forms.RegexField("^([0-9a-f]{64})?$", required=False)


class DelegateForm(forms.Form):
    to_username = forms.CharField(max_length=150)
    hours = forms.IntegerField(min_value=1, max_value=LONGEST_HOURS)


class NothingForm(forms.Form):
    """Claim and release say nothing but that."""


def read(form: type[forms.Form], posted: QueryDict) -> dict[str, Any]:
    """What was posted, or a refusal that names the fields."""
    filled = form(posted)
    if filled.is_valid():
        return dict(filled.cleaned_data)
    raise InvalidInput(
        errors=[FieldError(f"/{name}", str(message)) for name, found in filled.errors.items() for message in found]
    )
