"""Contracts in the console: drafts, the acts on a contract, and the link to its readiness board."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, ReasonForm, SuggestInput
from governance.console.selectors.pages import organization_choices, policy_suggestions, readiness_counts
from governance.contracts.admin.readiness import ReadinessPages
from governance.contracts.models import Contract
from governance.contracts.rules.readiness import APPROVED, CORE_FIELDS
from governance.contracts.selectors import readiness_board
from governance.contracts.services.contracts import (
    contract_change,
    contract_create,
    contract_discard,
    contract_new_version,
    contract_open,
    contract_retire,
    contract_suspend,
)
from governance.contracts.states import AdapterName, Effect, RiskTier
from governance.people.rules.roles import FIRST_TIER
from governance.policies.selectors import tiers_active

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


def _form_choices(values: Any) -> list[tuple[str, str]]:
    return [(value.value, value.value) for value in values]


class ContractForm(ConsoleForm):
    """The fields of a contract besides its documents."""

    title = forms.CharField(max_length=120, widget=UnfoldAdminTextInputWidget)
    effect = forms.ChoiceField(
        choices=_form_choices(Effect),
        initial=Effect.ONCE.value,
        widget=UnfoldAdminSelectWidget,
        help_text=(
            "What happens if the action is sent twice. “once” is the safe choice: Holdpoint never retries it on its "
            "own."
        ),
    )
    risk_tier = forms.ChoiceField(
        choices=_form_choices(RiskTier), initial=RiskTier.HIGH.value, widget=UnfoldAdminSelectWidget
    )
    adapter = forms.ChoiceField(
        choices=_form_choices(AdapterName),
        initial=AdapterName.EXTERNAL.value,
        widget=UnfoldAdminSelectWidget,
        help_text="Who carries out the action. “external”: the caller does it and reports the result.",
    )
    review_owner = forms.ChoiceField(
        choices=[],
        widget=UnfoldAdminSelectWidget,
        help_text="The reviewer tier that decides on held attempts.",
    )
    policy_slug = forms.RegexField(
        SLUG,
        label="Policy",
        widget=SuggestInput,
        help_text="The active version of this policy decides. If no version is active, every attempt is denied.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer_tiers([self.obj.organization_id] if self.obj else [])
        policy: Any = self.fields["policy_slug"].widget
        policy.suggestions = policy_suggestions()

    def _offer_tiers(self, organization_ids: Iterable[UUID]) -> None:
        tiers = tiers_active(organization_ids=organization_ids)
        review_owner: Any = self.fields["review_owner"]
        review_owner.choices = [(tier, tier) for tier in tiers or (FIRST_TIER,)]


class NewContractForm(ContractForm):
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    slug = forms.RegexField(
        SLUG,
        widget=UnfoldAdminTextInputWidget,
        help_text="Part of the address that callers use. Lower-case letters, digits and dashes.",
    )
    field_order = ["organization", "slug", "title"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ids = console_actor(self.request).organization_ids if self.request else ()
        organization: Any = self.fields["organization"]
        organization.queryset = organization_choices(ids=ids)
        self._offer_tiers(organization.queryset.values_list("id", flat=True))


def _contract_create_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    actor = model_admin.require_operator(request, data["organization"].id)
    contract = contract_create(actor=actor, at=timezone.now(), **data)
    messages.success(
        request, "Draft created with the safe default documents. Check each area, then ask its owners to approve."
    )
    return HttpResponseRedirect(model_admin.page_url("readiness", contract.id))


def _contract_edit_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]) -> str:
    changes = {name: value for name, value in data.items() if value != getattr(obj, name)}
    if not changes:
        return "Nothing was changed."
    contract_change(actor=console_actor(request), at=timezone.now(), contract_id=obj.id, core=changes)
    return "Changed. Approvals from the version before count only if these fields are the same as there."


def contract_open_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]) -> str:
    contract_open(actor=console_actor(request), at=timezone.now(), contract_id=obj.id)
    return "Open. It accepts attempts from the next request on."


def _contract_suspend_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]) -> str:
    contract_suspend(actor=console_actor(request), at=timezone.now(), contract_id=obj.id, **data)
    return "Suspended. It accepts no attempts from the next request on."


def _contract_retire_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]) -> str:
    contract_retire(actor=console_actor(request), at=timezone.now(), contract_id=obj.id, **data)
    return "Retired for good."


def _contract_new_version_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]
) -> HttpResponse:
    made = contract_new_version(actor=console_actor(request), at=timezone.now(), contract_id=obj.id)
    return model_admin.done(request, made, f"Version {made.version} is a draft with the same content.")


def _contract_discard_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Contract, data: dict[str, Any]
) -> HttpResponse:
    contract_discard(actor=console_actor(request), at=timezone.now(), contract_id=obj.id)
    messages.success(request, f"The draft {obj} is deleted.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


def _missing_areas_context(request: HttpRequest, obj: Contract) -> dict[str, Any]:
    missing = [row for row in readiness_board(contract=obj) if row.status != APPROVED]
    return {"missing": missing, "blocked": bool(missing)}


ADD = Act(
    "add",
    "Draft a contract",
    "A draft executes nothing. It starts with ten safe default documents, which you can change on its readiness "
    "board. You can open the contract when the owners of all ten areas have approved it.",
    _contract_create_act,
    NewContractForm,
)
ACTS = [
    Act(
        "edit",
        "Edit",
        "You can edit only drafts. To change an open contract, make a new version.",
        _contract_edit_act,
        ContractForm,
        button="Save",
        available=lambda obj: obj.state == "draft",
        initial=lambda obj: {name: getattr(obj, name) for name in ("title", *CORE_FIELDS)},
    ),
    Act(
        "open",
        "Open",
        "The contract accepts attempts from the next request on. Its documents cannot be changed any more.",
        contract_open_act,
        available=lambda obj: obj.state in {"draft", "suspended"},
        template="admin/holdpoint/contract_open.html",
        context=_missing_areas_context,
    ),
    Act(
        "suspend",
        "Suspend",
        "The contract accepts no attempts from the next request on. You can open it again.",
        _contract_suspend_act,
        ReasonForm,
        available=lambda obj: obj.state == "open",
        danger=True,
    ),
    Act(
        "new-version",
        "New version",
        "Creates a draft with the same content. The approval of a document stays valid until you change the "
        "document. This version does not change.",
        _contract_new_version_act,
        available=lambda obj: obj.state != "draft",
    ),
    Act(
        "retire",
        "Retire",
        "This version never accepts an attempt again. Its record stays.",
        _contract_retire_act,
        ReasonForm,
        available=lambda obj: obj.state != "retired",
        danger=True,
    ),
    Act(
        "discard",
        "Discard draft",
        "Deletes the draft and its documents. This is possible only while no owner has decided on it.",
        _contract_discard_act,
        available=lambda obj: obj.state == "draft",
        danger=True,
    ),
]

STATE_LABELS = {"draft": "info", "open": "success", "suspended": "warning", "retired": "default"}


class ContractChangeList(ChangeList):
    """Adds the number of approvals to each contract of the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # For all rows together: a board per row would be two more queries for each contract of the list.
        rows: list[Any] = list(self.result_list)  # type: ignore[has-type]
        counts = readiness_counts(contracts=rows)
        for row in rows:
            row.approved_areas = counts[row.id]
        self.result_list = rows


@admin.register(Contract)
class ContractAdmin(ReadinessPages):
    addable = True
    list_display = [
        "__str__",
        "title",
        "state_shown",
        "readiness",
        "effect",
        "risk_tier",
        "adapter",
        "policy_slug",
        "organization",
    ]
    list_filter = ["state", "effect", "risk_tier", "adapter"]
    search_fields = ["slug", "title", "=id"]
    search_help_text = "Slug, title or id."
    fields = [
        "organization",
        "slug",
        "version",
        "title",
        "state_shown",
        "closed_reason_code",
        *CORE_FIELDS,
        "opened_at",
        "snapshot_shown",
    ]
    readonly_fields = fields
    change_form_outer_after_template = "admin/holdpoint/contract.html"
    add_act = ADD
    acts = ACTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[Contract]:
        return super().get_queryset(request).select_related("organization")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ContractChangeList

    @display(description="State", label=STATE_LABELS)
    def state_shown(self, obj: Contract) -> str:
        return str(obj.state)

    @admin.display(description="Readiness")
    def readiness(self, obj: Contract) -> SafeString:
        url = self.page_url("readiness", obj.id)
        return format_html('<a href="{}">{}/10 approved</a>', url, getattr(obj, "approved_areas", "?"))

    @admin.display(description="Snapshot SHA-256")
    def snapshot_shown(self, obj: Contract) -> SafeString | str:
        return format_html("<code>{}</code>", obj.snapshot_sha256) if obj.snapshot_sha256 else "none yet: never opened"

    def page_links(self, request: HttpRequest, obj: Contract) -> list[dict[str, Any]]:
        return [{"title": "Readiness board", "url": self.page_url("readiness", obj.id), "primary": True}]

    def page_context(self, request: HttpRequest, obj: Contract) -> dict[str, Any]:
        return {"board": readiness_board(contract=obj)}
