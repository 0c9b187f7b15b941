"""Identity providers in the console: propose one, propose a change of its mapping, disconnect it. Also takes away the
pages that allauth has for its own tables."""

from typing import Any

from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from governance.authority.admin import shown_once, waits_for_second
from governance.authority.services.changes import Outcome, authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, JsonTextField, ReasonForm
from governance.console.selectors.pages import organization_choices
from governance.identity.models import IdentityProvider
from governance.identity.services.providers import identity_provider_disable, scim_close
from governance.identity.states import ProviderKind
from governance.people.rules.roles import AUDIT

KIND = "identity_provider.change"
SHOWN = [
    "organization",
    "slug",
    "kind",
    "active",
    "issuer",
    "client_id",
    "sso_url",
    "subject_claim",
    "roles_claim",
    "mapping",
    "create_on_first_sign_in",
    "required",
    "scim_prefix",
    "changed_at",
]


def _text(**more: Any) -> forms.CharField:
    return forms.CharField(required=False, widget=UnfoldAdminTextInputWidget, **more)


class TermsForm(ConsoleForm):
    issuer = _text(max_length=255, help_text="OIDC: the issuer's address. SAML: the entity id.")
    client_id = _text(max_length=191, help_text="OIDC: the client that the provider made for Holdpoint.")
    client_secret = forms.CharField(
        required=False, max_length=500, widget=UnfoldAdminPasswordWidget, help_text="OIDC. Empty: it stays as it is."
    )
    sso_url = _text(max_length=255, label="Sign-in address", help_text="SAML: where people are sent.")
    certificate = forms.CharField(
        required=False, max_length=8192, widget=UnfoldAdminTextareaWidget, help_text="SAML: the signing certificate."
    )
    subject_claim = _text(max_length=120, help_text="Names a person for ever. Empty: sub, or the NameID.")
    roles_claim = _text(max_length=120, initial="groups")
    mapping = JsonTextField(
        rows=8, initial={}, help_text='Value of the claim to roles: {"reviewers": ["reviewer:finance"]}'
    )
    create_on_first_sign_in = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Somebody unknown with a mapped role gets an account. Otherwise only SCIM makes people.",
    )
    required = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="People of the organization cannot sign in with a password or passkey. Administrators still can.",
    )


class ConnectForm(TermsForm):
    organization: Any = forms.ModelChoiceField(queryset=None, widget=UnfoldAdminSelectWidget)
    slug = forms.SlugField(max_length=63, widget=UnfoldAdminTextInputWidget, help_text="Part of its addresses.")
    kind = forms.ChoiceField(choices=[(one.value, one.value) for one in ProviderKind], widget=UnfoldAdminSelectWidget)
    field_order = ["organization", "slug", "kind"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["organization"]
        field.queryset = organization_choices(ids=console_actor(self.request).organization_ids if self.request else ())


def _propose(actor: Any, organization: Any, subject: str, details: dict[str, Any]) -> Outcome:
    secret = details["terms"].pop("client_secret", "") if "terms" in details else ""
    asked = details | ({"client_secret": secret} if secret else {})
    return authority_act(
        actor=actor, at=timezone.now(), organization=organization, kind=KIND, subject=subject, details=asked
    )


def _connect_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> HttpResponse:
    organization, slug, kind = data.pop("organization"), data.pop("slug"), data.pop("kind")
    actor = model_admin.require_operator(request, organization.id)
    outcome = _propose(actor, organization, slug, {"act": "create", "kind": kind, "terms": data})
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return model_admin.done(request, outcome.applied.made, "Connected.")


def _change_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> HttpResponse | str:
    actor = model_admin.require_operator(request, obj.organization_id)
    outcome = _propose(actor, obj.organization, str(obj.id), {"act": "change", "terms": data})
    return waits_for_second(request, outcome) if outcome.applied is None else "Changed."


def _scim_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> HttpResponse:
    actor = model_admin.require_operator(request, obj.organization_id)
    outcome = _propose(actor, obj.organization, str(obj.id), {"act": "open_scim"})
    return shown_once(request, outcome, back=model_admin.page_url("change", obj.pk))


def _scim_close_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> str:
    actor = model_admin.require_operator(request, obj.organization_id)
    scim_close(actor=actor, at=timezone.now(), provider_id=obj.id)
    return "Closed. The token is refused from now on."


def _disable_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: Any, data: dict[str, Any]) -> str:
    actor = model_admin.require_operator(request, obj.organization_id)
    identity_provider_disable(actor=actor, at=timezone.now(), provider_id=obj.id, **data)
    return "Disconnected. Its people are signed out, and nobody signs in by it any more."


def _terms(obj: Any) -> dict[str, Any]:
    return {name: getattr(obj, name) for name in TermsForm.base_fields if name != "client_secret"} if obj else {}


@admin.register(IdentityProvider)
class IdentityProviderAdmin(ConsoleAdmin):
    addable = True
    view_permission = AUDIT
    list_display = ["slug", "organization", "kind", "active", "required", "scim_prefix", "changed_at"]
    list_filter = ["kind", "active"]
    search_fields = ["slug", "=id"]
    fields = SHOWN
    readonly_fields = SHOWN
    add_act = Act(
        "connect",
        "Connect an identity provider",
        "People of the organization sign in there. The mapping decides which of its groups gives which role. A second "
        "person confirms all of it.",
        _connect_act,
        ConnectForm,
        button="Propose",
    )
    acts = [
        Act(
            "change",
            "Change settings and mapping",
            "A second person confirms the change. Roles that the mapping no longer gives are taken at once then.",
            _change_act,
            TermsForm,
            available=lambda obj: obj.active,
            initial=_terms,
            button="Propose",
        ),
        Act(
            "open-scim",
            "Open SCIM",
            "Makes a token with which the provider creates, changes and ends people. It is shown once, and works when "
            "a second person has confirmed it.",
            _scim_act,
            available=lambda obj: obj.active,
            button="Make a token",
        ),
        Act(
            "close-scim",
            "Close SCIM",
            "The token is refused from the next request on.",
            _scim_close_act,
            available=lambda obj: bool(obj.scim_prefix),
            danger=True,
        ),
        Act(
            "disable",
            "Disconnect",
            "Nobody signs in by this provider any more, and its people are signed out. They keep their roles until "
            "their access is ended.",
            _disable_act,
            ReasonForm,
            available=lambda obj: obj.active,
            danger=True,
        ),
    ]


# allauth's own pages would show and change accounts without our services. The tables stay empty.
for model in (SocialAccount, SocialApp, SocialToken):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
