"""The forms of a definition's pages."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from typing import Any

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.console.admin.base import console_actor
from governance.console.admin.forms import NOTE_LENGTH, ConsoleForm, JsonTextField, SuggestInput, pretty
from governance.console.selectors.pages import organization_choices, policy_suggestions, product_choices
from governance.contracts.states import RiskTier
from governance.policies.selectors import reviewer_tiers
from workflows.definitions.models import WorkflowDefinitionRevision
from workflows.definitions.rules.diff import changes_in_words
from workflows.definitions.rules.document import schemas_of
from workflows.definitions.rules.picture import layout

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
VALIDATE = "admin:workflows_workflowdefinition_validate"


def _reason_field(
    text: str = (
        "Why you make this change, for the history. Up to 280 characters. Do not enter names, patient data or secrets: "
        "Holdpoint checks the text."
    ),
) -> Any:
    return forms.CharField(required=False, max_length=NOTE_LENGTH, widget=UnfoldAdminTextInputWidget, help_text=text)


def _slug_field(**more: Any) -> Any:
    text = "Identifies the definition and its contract. Lower-case letters, digits and dashes."
    return forms.RegexField(SLUG, widget=UnfoldAdminTextInputWidget, **({"help_text": text} | more))


def _organizations_to_choose(request: HttpRequest | None) -> Any:
    ids = console_actor(request).organization_ids if request else ()
    return organization_choices(ids=ids)


class EditForm(ConsoleForm):
    slug = _slug_field()
    definition = JsonTextField(
        label="Definition (JSON)",
        rows=28,
        sort=False,
        help_text="You can save a draft with errors, but you cannot publish it.",
    )
    reason = _reason_field()
    revision = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        where = f"?organization={self.obj.organization_id}" if self.obj else ""
        self.fields["definition"].widget.attrs["data-validate"] = reverse(VALIDATE) + where

    def clean_definition(self) -> dict[str, Any]:
        document = self.cleaned_data["definition"]
        if not isinstance(document, dict):
            raise forms.ValidationError("A JSON object with name, start_step and steps.")
        return document


class OwnerForm(ConsoleForm):
    """Whose definition it becomes. The organization is asked for only where that is open."""

    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    product: Any = forms.ModelChoiceField(
        queryset=None,
        required=False,
        empty_label="The whole organization",
        widget=UnfoldAdminSelectWidget,
        help_text="New cases of this product use the definition once it is published.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = self.obj.organization_id if self.obj else None
        organizations = _organizations_to_choose(self.request)
        chosen: Any = organizations.filter(id=own) if own else organizations
        fields: Any = self.fields
        fields["organization"].queryset = chosen
        fields["product"].queryset = product_choices(organizations=chosen)
        if len(chosen) == 1:
            fields["organization"].initial = chosen[0]
            fields["organization"].widget = forms.HiddenInput()
        else:
            fields["product"].label_from_instance = lambda row: f"{row.organization}: {row}"

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        product, organization = data.get("product"), data.get("organization")
        if product is not None and organization is not None and product.organization_id != organization.id:
            self.add_error("product", "This product belongs to another organization. Choose one of this organization.")
        return data


class AddForm(EditForm, OwnerForm):
    field_order = ["organization", "product", "slug", "definition", "reason"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["revision"]


class CloneForm(OwnerForm):
    name = forms.CharField(max_length=120, widget=UnfoldAdminTextInputWidget)
    slug = _slug_field(
        required=False,
        help_text="If you leave it empty, the slug stays the same, with a suffix if another product already uses it.",
    )
    reason = _reason_field()


class PublishForm(ConsoleForm):
    policy_slug = forms.RegexField(
        SLUG,
        required=False,
        label="Policy",
        widget=SuggestInput,
        help_text=(
            "The active version of this policy decides on the steps. If you leave it empty, the policy stays the "
            "same, or is “workflows”."
        ),
    )
    risk_tier = forms.ChoiceField(
        required=False,
        choices=[("", "as before, or medium"), *((tier.value, tier.value) for tier in RiskTier)],
        widget=UnfoldAdminSelectWidget,
    )
    review_owner = forms.ChoiceField(
        required=False,
        choices=[],
        widget=UnfoldAdminSelectWidget,
        help_text=(
            "The reviewer tier that decides on held steps. If you change these terms, the ten owners have to "
            "approve again."
        ),
    )
    reason = _reason_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organization_id = self.obj.organization_id
        tiers = [(tier, tier) for tier in reviewer_tiers(organization_id=organization_id)]
        fields: Any = self.fields
        fields["review_owner"].choices = [("", "as before, or the first tier that a step names"), *tiers]
        fields["policy_slug"].widget.suggestions = policy_suggestions(organization_id=organization_id)


class ArchiveForm(ConsoleForm):
    reason = _reason_field()


def document_as_written(document: Any) -> Any:
    """The database does not keep the order of names; people read the name first and the steps in the order of work."""
    if not isinstance(document, dict):
        return document
    whole, of_step = schemas_of(document)
    found = _ordered(document, whole["properties"])
    steps = document.get("steps")
    if isinstance(steps, dict):
        order = [name for row in layout(document).rows for name in row]
        found["steps"] = {
            name: _ordered(step, of_step["properties"]) if isinstance(step, dict) else step
            for name, step in _ordered(steps, order).items()
        }
    return found


def _ordered(value: Mapping[str, Any], order: Iterable[str]) -> dict[str, Any]:
    known = [name for name in order if name in value]
    return {name: value[name] for name in (*known, *sorted(set(value) - set(known)))}


def changed_lines(before: Any, after: Any) -> list[tuple[str, str]]:
    """(mark, line) with three lines around each change; a mark is + or - or nothing, `…` where lines were left out."""
    old, new = (pretty(document_as_written(document), sort=False).splitlines() for document in (before, after))
    found: list[tuple[str, str]] = []
    for line in list(unified_diff(old, new, lineterm=""))[2:]:
        found.append(("…", "") if line.startswith("@@") else (line[0].strip(), line[1:]))
    return found


def revision_words(revision: WorkflowDefinitionRevision) -> list[str]:
    """What happened, one sentence each; the first revision is the draft itself."""
    status, slug = revision.diff.get("status"), revision.diff.get("slug")
    if status and status["before"] is None:
        return ["Drafted."]
    told = [{"active": "Published.", "archived": "Archived."}.get(status["after"], "")] if status else []
    if slug:
        told.append(f"The slug changed from {slug['before']} to {slug['after']}.")
    return [*told, *changes_in_words(revision.diff["definition"])]
