"""Service accounts and their API keys in the console. The page after issuing or rotating shows the key's clear text,
once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm
from governance.console.selectors.pages import organization_choices, people_in_scope
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.keys import TELL_DAYS, days_left
from governance.people.rules.roles import READING_SCOPES, ApiScope
from governance.people.selectors.people import key_ends
from governance.people.services.accounts import (
    IssuedKey,
    api_key_issue,
    api_key_revoke,
    api_key_rotate,
    service_account_suspend,
)
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


class IssueForm(forms.Form):
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in ApiScope],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    days = forms.IntegerField(
        label="Valid for days",
        initial=90,
        min_value=1,
        max_value=730,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="If you leave it empty, the key is valid for a year (HOLDPOINT_API_KEY_DAYS).",
    )


class KeyRotateForm(forms.Form):
    hours = forms.IntegerField(
        label="Old key stays valid for hours",
        initial=24,
        min_value=0,
        max_value=720,
        widget=UnfoldAdminIntegerFieldWidget,
    )


class ServiceAccountReasonForm(forms.Form):
    reason_code = forms.CharField(
        widget=UnfoldAdminTextInputWidget,
        help_text="A reason code of scope intervention, such as incident_response.",
    )
    note = forms.CharField(required=False, max_length=280, widget=UnfoldAdminTextInputWidget)


def _key_show_once(model_admin: ConsoleAdmin, request: HttpRequest, issued: IssuedKey) -> HttpResponse:
    response = render(
        request,
        "admin/holdpoint/key_once.html",
        {
            **model_admin.admin_site.each_context(request),
            "title": "The new key",
            "secret": issued.secret,
            "key": issued.key,
            "opts": ApiKey._meta,
        },
    )
    # The page has the secret in clear text: no browser or proxy cache may keep it.
    response["Cache-Control"] = "no-store"
    return response


def _key_propose(
    model_admin: ConsoleAdmin, request: HttpRequest, account: ServiceAccount, details: dict[str, Any]
) -> HttpResponse:
    outcome = authority_act(
        actor=model_admin.require_operator(request, account.organization_id),
        at=timezone.now(),
        organization=account.organization,
        kind="api_key.issue",
        subject=str(account.id),
        details=details,
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return _key_show_once(model_admin, request, IssuedKey(outcome.applied.made, outcome.once))


def _key_issue_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ServiceAccount, data: dict[str, Any]
) -> HttpResponse:
    # A key that only reads changes nothing: one person is enough.
    if not READING_SCOPES.issuperset(data["scopes"]):
        asked = {"scopes": data["scopes"]} | ({"days": data["days"]} if data["days"] else {})
        return _key_propose(model_admin, request, obj, asked)
    now = timezone.now()
    issued = api_key_issue(
        actor=console_actor(request),
        at=now,
        service_account=obj,
        scopes=data["scopes"],
        expires_at=now + timedelta(days=data["days"]) if data["days"] else None,
    )
    return _key_show_once(model_admin, request, issued)


def _service_account_suspend_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ServiceAccount, data: dict[str, Any]
) -> str:
    code = reason_code_require(
        organization_id=obj.organization_id,
        scope=Scope.INTERVENTION,
        code=data["reason_code"],
        note=data["note"],
    )
    service_account_suspend(
        actor=console_actor(request), at=timezone.now(), service_account_id=obj.id, reason_code=code.code
    )
    return "Suspended. Its keys are refused from the next request on."


def _service_account_reinstate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ServiceAccount, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=model_admin.require_operator(request, obj.organization_id),
        at=timezone.now(),
        organization=obj.organization,
        kind="service_account.reinstate",
        subject=str(obj.id),
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return "Reinstated. Its live keys work again."


class NewServiceAccountForm(ConsoleForm):
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)
    slug = forms.RegexField(
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        widget=UnfoldAdminTextInputWidget,
        help_text="Lower-case letters, digits and dashes.",
    )
    description = forms.CharField(required=False, max_length=280, widget=UnfoldAdminTextInputWidget)
    responsible: Any = forms.ModelChoiceField(
        queryset=None,
        empty_label=None,
        widget=UnfoldAdminSelectWidget,
        help_text="What the service does counts as this person's: they may not release what it asks for.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        ids = console_actor(self.request).organization_ids if self.request else ()
        fields["organization"].queryset = organization_choices(ids=ids)
        fields["responsible"].queryset = people_in_scope()


def _service_account_create_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    outcome = authority_act(
        actor=model_admin.require_operator(request, data["organization"].id),
        at=timezone.now(),
        organization=data["organization"],
        kind="service_account.create",
        subject=data["slug"],
        details={"description": data["description"], "responsible": str(data["responsible"].id)},
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return model_admin.done(request, outcome.applied.made, "Created. Issue a key for it next.")


class ResponsibleForm(ConsoleForm):
    responsible: Any = forms.ModelChoiceField(
        queryset=None,
        widget=UnfoldAdminSelectWidget,
        help_text="An active person who has a role in this organization.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["responsible"]
        field.queryset = people_in_scope()


def _responsible_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: ServiceAccount, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=model_admin.require_operator(request, obj.organization_id),
        at=timezone.now(),
        organization=obj.organization,
        kind="service_account.responsible",
        subject=str(obj.id),
        details={"responsible": str(data["responsible"].id)},
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return f"{data['responsible'].username} is responsible for this account now."


@admin.register(ServiceAccount)
class ServiceAccountAdmin(ConsoleAdmin):
    addable = True
    list_display = ["slug", "organization", "status", "responsible", "created_at"]
    list_select_related = ["organization", "responsible"]
    list_filter = ["status"]
    search_fields = ["slug", "=id"]
    readonly_fields = ["organization", "slug", "description", "responsible", "status", "suspended_reason_code"]
    readonly_fields += ["how_to_mend"]
    add_act = Act(
        "add",
        "Add a service account",
        "Each service has its own account and calls with its own key. Unless the organization is still being founded, "
        "a second person has to confirm it.",
        _service_account_create_act,
        NewServiceAccountForm,
    )
    acts = [
        Act(
            "issue-key",
            "Issue a key",
            "Creates a key for this account. The next page shows it once.",
            _key_issue_act,
            IssueForm,
            available=lambda obj: not obj.internal,
        ),
        Act(
            "responsible",
            "Name the responsible person",
            "What the account does counts as theirs: they cannot release what it asks for, nor approve what it wrote. "
            "A second person confirms it. A suspended account stays suspended until it is reinstated.",
            _responsible_act,
            ResponsibleForm,
            available=lambda obj: not obj.internal,
        ),
        Act(
            "suspend",
            "Suspend",
            "All keys of this account are refused from the next request on.",
            _service_account_suspend_act,
            ServiceAccountReasonForm,
            available=lambda obj: obj.status == "active",
            danger=True,
        ),
        Act(
            "reinstate",
            "Reinstate",
            "The account's live keys work again.",
            _service_account_reinstate_act,
            available=lambda obj: obj.status == "suspended",
        ),
    ]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = [name for name in self.readonly_fields if name != "how_to_mend"]
        return [*shown, "how_to_mend"] if obj and obj.responsible_id is None else shown

    @admin.display(description="What to do")
    def how_to_mend(self, obj: ServiceAccount) -> str:
        if obj.internal:
            return "Nothing. This account is a part of Holdpoint itself: it has no key and no responsible person."
        return (
            "Nobody is responsible for this account, so it was suspended and its keys are refused. Name the "
            "responsible person (a second person confirms it), then reinstate the account."
        )


def _key_rotate_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: ApiKey, data: dict[str, Any]) -> HttpResponse:
    # Whoever rotates a key holds the new one, so this is as wide as issuing it.
    account = obj.service_account
    if not READING_SCOPES.issuperset(obj.scopes):
        asked = {"replaces": str(obj.id), "overlap_hours": data["hours"]}
        return _key_propose(model_admin, request, account, asked)
    issued = api_key_rotate(
        actor=console_actor(request), at=timezone.now(), key_id=obj.id, overlap=timedelta(hours=data["hours"])
    )
    return _key_show_once(model_admin, request, issued)


def _key_revoke_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: ApiKey, data: dict[str, Any]) -> str:
    api_key_revoke(actor=console_actor(request), at=timezone.now(), key_id=obj.id)
    return "Revoked. The key is refused from the next request on."


@admin.register(ApiKey)
class ApiKeyAdmin(ConsoleAdmin):
    list_display = ["__str__", "service_account", "scopes_shown", "end_shown", "revoked_at", "last_used_at"]
    list_select_related = ["service_account"]
    search_fields = ["prefix", "=id"]
    list_before_template = "admin/holdpoint/key_ends.html"
    fields = ["prefix", "service_account", "scopes", "end_shown", "revoked_at", "last_used_at", "created_at"]
    readonly_fields = fields
    acts = [
        Act(
            "rotate",
            "Rotate",
            "Creates a new key with the same scopes and shows it once. The old key stays valid during the overlap "
            "and then ends.",
            _key_rotate_act,
            KeyRotateForm,
            available=lambda obj: obj.revoked_at is None,
        ),
        Act(
            "revoke",
            "Revoke",
            "The key is refused from the next request on. This cannot be undone.",
            _key_revoke_act,
            available=lambda obj: obj.revoked_at is None,
            danger=True,
        ),
    ]

    def organization_id_of(self, obj: Any) -> UUID | None:
        return obj.service_account.organization_id

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        return super().get_queryset(request).select_related("service_account__organization")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, (extra_context or {}) | {"ends": key_ends(at=timezone.now())})

    @admin.display(description="Scopes")
    def scopes_shown(self, obj: ApiKey) -> str:
        return ", ".join(obj.scopes)

    @display(description="Ends", ordering="expires_at", label={"never": "danger", "soon": "warning", "ended": "info"})
    def end_shown(self, obj: ApiKey) -> tuple[str, str]:
        """In words, with a colour where somebody has to do something."""
        now = timezone.now()
        if obj.revoked_at is not None:
            return "ended", "revoked"
        if obj.expires_at is None:
            return "never", "never ends: rotate it"
        days = days_left(ends=obj.expires_at, at=now)
        date = f"{obj.expires_at:%Y-%m-%d %H:%M} UTC"
        if days < 0:
            return "ended", f"{date} (ended)"
        return ("soon", f"{date} (in {days} days)") if days <= max(TELL_DAYS) else ("", date)
