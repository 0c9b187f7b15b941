"""Registered modules in the console: what they offer, and the acts."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from governance.authority.admin import shown_once, waits_for_second
from governance.authority.services.changes import Outcome, authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, JsonTextField, ReasonForm, pretty
from governance.people.rules.roles import AUDIT
from governance.retention.admin.forms import WhereForm
from reasoncodes.base.actors import Actor
from workflows.modules.models import Module
from workflows.modules.selectors import module_accounts, module_list, module_terms
from workflows.modules.services.registry import (
    TERMS,
    IssuedModule,
    module_account_bind,
    module_disable,
    module_secret_rotate,
)
from workflows.modules.states import ModuleTransport

Data = dict[str, Any]
OPERATIONS_HELP = (
    'By name: {"refund": {"effect": "once", "send": {…}, "returns": {…}, "method": "POST", "path": "/refunds"}}'
)
PUBLISHES_HELP = 'Event types that it may publish beside the answers of its operations: ["shipment.arrived"]'


class ModuleTermsForm(ConsoleForm):
    transport = forms.ChoiceField(
        choices=[(one.value, one.value) for one in ModuleTransport], widget=UnfoldAdminSelectWidget
    )
    url = forms.CharField(
        label="URL",
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text="Only for http: an https address of a public host, without a password.",
    )
    operations = JsonTextField(rows=14, initial={}, help_text=OPERATIONS_HELP)
    publishes = JsonTextField(rows=3, initial=[], help_text=PUBLISHES_HELP)


class ModuleRegisterForm(WhereForm, ModuleTermsForm):
    slug = forms.SlugField(max_length=30, widget=UnfoldAdminTextInputWidget, help_text="Workflows name it by this.")
    field_order = ["organization", "slug"]


class ModuleSecretForm(forms.Form):
    hours = forms.IntegerField(
        label="Hours during which the old secret also signs",
        initial=24,
        min_value=0,
        max_value=720,
        widget=UnfoldAdminIntegerFieldWidget,
    )


class AccountForm(ConsoleForm):
    account = forms.CharField(
        label="Service account", max_length=64, widget=UnfoldAdminTextInputWidget, help_text="Its slug or id."
    )


def _propose(actor: Actor, organization: Any, kind: str, subject: str, details: Data) -> Outcome:
    return authority_act(
        actor=actor, at=timezone.now(), organization=organization, kind=kind, subject=subject, details=details
    )


def _module_register_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: Data) -> HttpResponse:
    organization, slug = data.pop("organization"), data.pop("slug")
    actor = model_admin.require_operator(request, organization.id)
    outcome = _propose(actor, organization, "module.register", slug, data)
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    module = outcome.applied.made.module
    if outcome.once:
        return shown_once(request, outcome, back=model_admin.page_url("change", module.pk))
    return model_admin.done(request, module, "Registered.")


def _module_change_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> HttpResponse | str:
    return _changed(model_admin, request, obj, data, "Changed. This is a new version.")


def _module_enable_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> HttpResponse | str:
    return _changed(model_admin, request, obj, {"enable": True}, "Enabled.")


def _module_release_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> HttpResponse | str:
    return _changed(model_admin, request, obj, {"release": data["account"]}, "Released.")


def _changed(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, details: Data, said: str
) -> HttpResponse | str:
    actor = model_admin.require_operator(request, obj.organization_id)
    outcome = _propose(actor, obj.organization, "module.change", str(obj.id), details)
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    if outcome.once:
        return shown_once(request, outcome, back=model_admin.page_url("change", obj.pk))
    return said


def _module_disable_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> str:
    module_disable(actor=console_actor(request), at=timezone.now(), module_id=obj.id, **data)
    return "Disabled. Nothing more is sent to it, and its keys are refused."


def _module_bind_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> str:
    module_account_bind(actor=console_actor(request), at=timezone.now(), module_id=obj.id, account=data["account"])
    return "Bound. The account's keys can do only what this module may."


def _module_rotate_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Module, data: Data) -> HttpResponse:
    made = module_secret_rotate(
        actor=console_actor(request), at=timezone.now(), module_id=obj.id, overlap=timedelta(hours=data["hours"])
    )
    return _module_secret_page(model_admin, request, made)


def _module_secret_page(model_admin: ConsoleAdmin, request: HttpRequest, made: IssuedModule) -> HttpResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "The secret",
        "secret": made.secret,
        "subject": made.module,
        "back": model_admin.page_url("change", made.module.pk),
        "opts": Module._meta,
    }
    response = render(request, "admin/workflows/module_secret.html", context)
    # The page has the secret in clear text: no browser or proxy cache may keep it.
    response["Cache-Control"] = "no-store"
    return response


def _terms_now(module: Any) -> Data:
    if module is None:
        return {}
    terms = module_terms(module=module)
    return {name: getattr(terms, name) for name in TERMS}


@admin.register(Module)
class ModuleAdmin(ConsoleAdmin):
    addable = True
    view_permission = AUDIT
    list_display = ["slug", "state_shown", "version", "changed_at", "organization"]
    list_select_related = ["organization"]
    search_fields = ["slug", "=id"]
    fields = [
        "slug",
        "state_shown",
        "version",
        "reached",
        "operations_shown",
        "publishes_shown",
        "accounts_shown",
        "organization",
        "created_at",
        "changed_at",
    ]
    readonly_fields = fields
    add_act = Act(
        "register",
        "Register a module",
        "Workflows of the organization can call its operations. A second person confirms it, and is shown the secret "
        "with which calls over http are signed.",
        _module_register_act,
        ModuleRegisterForm,
        button="Propose",
    )
    acts = [
        Act(
            "change",
            "Change",
            "Makes a new version, once a second person has confirmed it. Published workflows keep the version that "
            "they were published with; a new address counts for all of them.",
            _module_change_act,
            ModuleTermsForm,
            available=lambda obj: obj.active,
            initial=_terms_now,
            button="Propose",
        ),
        Act(
            "bind",
            "Bind a service account",
            "The keys of the account can then publish only what this module may, and answer only its steps.",
            _module_bind_act,
            AccountForm,
        ),
        Act(
            "release",
            "Release a service account",
            "Gives the keys of the account more than they have, so a second person confirms it.",
            _module_release_act,
            AccountForm,
            button="Propose",
        ),
        Act(
            "rotate",
            "Rotate the secret",
            "Creates a new secret and shows it once. During the overlap both secrets sign, so that the module has time "
            "to switch.",
            _module_rotate_act,
            ModuleSecretForm,
        ),
        Act(
            "enable",
            "Enable",
            "Gives back what disabling took, so a second person confirms it.",
            _module_enable_act,
            available=lambda obj: not obj.active,
            button="Propose",
        ),
        Act(
            "disable",
            "Disable",
            "At once: nothing more is sent to it, its keys are refused, and no workflow that calls it can be "
            "published. Steps that wait for it time out.",
            _module_disable_act,
            ReasonForm,
            available=lambda obj: obj.active,
            danger=True,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Module]":
        return module_list().select_related("organization")

    @display(description="Status", label={"active": "success", "disabled": "danger"})
    def state_shown(self, obj: Module) -> str:
        return "active" if obj.active else "disabled"

    @admin.display(description="Reached by")
    def reached(self, obj: Module) -> str:
        terms = module_terms(module=obj)
        return f"{terms.transport} {terms.url}".strip()

    @admin.display(description="Operations")
    def operations_shown(self, obj: Module) -> str:
        return pretty(module_terms(module=obj).operations)

    @admin.display(description="Also publishes")
    def publishes_shown(self, obj: Module) -> str:
        return ", ".join(module_terms(module=obj).publishes) or "-"

    @admin.display(description="Bound service accounts")
    def accounts_shown(self, obj: Module) -> str:
        return ", ".join(account.slug for account in module_accounts(module=obj)) or "-"
