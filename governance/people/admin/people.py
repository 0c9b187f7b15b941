"""People and their roles in the console: add a person, invite them, give and take roles, end access, reset a sign-in.
Also removes the admin pages of Django's groups and allauth's tables."""

from typing import Any

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from governance.authority.admin import shown_once, waits_for_second
from governance.authority.services.changes import Outcome, authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, ReasonForm
from governance.console.selectors.pages import organization_choices, people_in_scope, people_with_roles, roles_in_scope
from governance.people.models import SignInLink, User
from governance.people.selectors.people import organization_shared
from governance.people.selectors.sign_in import has_sign_in, invitation_open, sign_in_links_of
from governance.people.services.links import invitation_create, invitation_goes_by_mail, invitation_withdraw
from governance.people.services.people import (
    person_deactivate,
    person_role_take,
    sign_in_reset,
)
from governance.tenancy.models import RoleGroup


def _choose_role(field: Any) -> None:
    field.queryset = roles_in_scope()
    field.label_from_instance = lambda row: f"{row.organization.slug}: {row.role}"


class PersonForm(forms.Form):
    username = forms.RegexField(
        r"^[\w.@+-]{1,150}$", widget=UnfoldAdminTextInputWidget, help_text="Letters, digits and @ . + - _ only."
    )
    email = forms.EmailField(
        label="Mail address",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Their invitation goes there. Without it the link is shown once, to whoever confirms.",
    )
    role: Any = forms.ModelChoiceField(
        queryset=None,
        widget=UnfoldAdminSelectWidget,
        help_text="Their first role. Without a role, only an administrator of the installation can see them.",
    )
    is_staff = forms.BooleanField(
        required=False,
        initial=True,
        label="Staff",
        widget=UnfoldBooleanWidget,
        help_text="Can open this console. Their roles decide what they see there.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose_role(self.fields["role"])


class RoleForm(forms.Form):
    role: Any = forms.ModelChoiceField(queryset=None, widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose_role(self.fields["role"])


def _person_create_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: None, data: dict[str, Any]
) -> HttpResponse:
    row: RoleGroup = data["role"]
    outcome = authority_act(
        actor=model_admin.require_operator(request, row.organization_id),
        at=timezone.now(),
        organization=row.organization,
        kind="person.create",
        subject=data["username"],
        details={"roles": [row.role], "email": data["email"], "is_staff": data["is_staff"]},
    )
    return _link_told(model_admin, request, outcome)


def _link_told(model_admin: ConsoleAdmin, request: HttpRequest, outcome: Outcome) -> HttpResponse:
    """It waits for a second person, or it is in force: then the link is shown, or is on its way."""
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    made = outcome.applied.made
    user = made.user if isinstance(made, SignInLink) else made
    if outcome.once:
        return shown_once(request, outcome, back=model_admin.page_url("change", user.pk))
    return model_admin.done(request, user, "Done. The invitation is on its way by mail.")


def _invite_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]) -> HttpResponse | str:
    # By mail nobody sees the link, so one person is enough.
    if invitation_goes_by_mail(user=obj):
        invitation_create(actor=console_actor(request), at=timezone.now(), user=obj)
        return "The new invitation is on its way by mail. The old one has ended."
    return _link_proposed(model_admin, request, obj, "invitation.show")


def _password_reset_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]
) -> HttpResponse:
    return _link_proposed(model_admin, request, obj, "password_reset.issue")


def _link_proposed(model_admin: ConsoleAdmin, request: HttpRequest, obj: User, kind: str) -> HttpResponse:
    actor = console_actor(request)
    organization = organization_shared(user=obj, ids=actor.organization_ids)
    outcome = authority_act(actor=actor, at=timezone.now(), organization=organization, kind=kind, subject=str(obj.id))
    return _link_told(model_admin, request, outcome)


def _invitation_withdraw_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]) -> str:
    invitation_withdraw(actor=console_actor(request), at=timezone.now(), user=obj)
    return "Withdrawn. The link does not work any more."


def link_told(link: SignInLink) -> str:
    """Who made and saw it and when it was used. From where, only the person themselves reads."""
    what = "Invitation" if link.purpose == SignInLink.Purpose.INVITATION else "New password"
    way = "by mail" if link.delivery == SignInLink.Delivery.MAIL else f"shown to {link.shown_to or 'the command line'}"
    made = f"{what} of {link.created_at:%d %B %Y %H:%M}, {way}"
    if link.ended_at is None:
        return f"{made}: not used, until {link.expires_at:%d %B %Y %H:%M} UTC"
    beside = ", from an address where that person was signed in too" if link.used_beside else ""
    return f"{made}: {link.ended_how} {link.ended_at:%d %B %Y %H:%M}{beside}"


def _role_give_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]
) -> HttpResponse | str:
    row: RoleGroup = data["role"]
    outcome = authority_act(
        actor=model_admin.require_operator(request, row.organization_id),
        at=timezone.now(),
        organization=row.organization,
        kind="role.give",
        subject=str(obj.id),
        details={"role": row.role},
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return f"Given: {row.role} in {row.organization.slug}."


def _role_take_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]) -> str:
    row: RoleGroup = data["role"]
    actor = model_admin.require_operator(request, row.organization_id)
    person_role_take(actor=actor, at=timezone.now(), user=obj, organization=row.organization, role=row.role)
    return f"Taken: {row.role} in {row.organization.slug}."


class PersonReasonForm(ReasonForm):
    """Offers only the system's reason codes: a person may belong to several organizations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"obj": None})


def _person_deactivate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]
) -> HttpResponse:
    person_deactivate(actor=console_actor(request), at=timezone.now(), user_id=obj.id, **data)
    messages.success(request, "Access ended. They are signed out, and actions that they approved are not sent.")
    return HttpResponseRedirect(model_admin.page_url("changelist"))


class PersonPlaceForm(ConsoleForm):
    organization: Any = forms.ModelChoiceField(queryset=None, empty_label=None, widget=UnfoldAdminSelectWidget)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ids = console_actor(self.request).organization_ids if self.request else ()
        organization: Any = self.fields["organization"]
        organization.queryset = organization_choices(ids=ids)


def _person_reactivate_act(
    model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]
) -> HttpResponse | str:
    outcome = authority_act(
        actor=model_admin.require_operator(request, data["organization"].id),
        at=timezone.now(),
        organization=data["organization"],
        kind="person.reactivate",
        subject=str(obj.id),
    )
    return waits_for_second(request, outcome) if outcome.applied is None else "The account is open again."


def _sign_in_reset_act(model_admin: ConsoleAdmin, request: HttpRequest, obj: User, data: dict[str, Any]) -> str:
    sign_in_reset(actor=console_actor(request), at=timezone.now(), user=obj, **data)
    return "Sign-in reset. All sessions are ended; second factors, passkeys and locks are removed."


@admin.register(User)
class UserAdmin(ConsoleAdmin):
    addable = True
    add_act = Act(
        "add",
        "Add a person",
        "They get one role now and more later, and an invitation: a link that works once, with which they choose their "
        "own password or passkey. Unless the organization is still being founded, a second person has to confirm it.",
        _person_create_act,
        PersonForm,
    )
    list_display = ["username", "is_staff", "is_active", "roles", "last_login"]
    list_filter = ["is_staff", "is_active"]
    search_fields = ["username", "=id"]
    fields = ["username", "email", "is_staff", "is_active", "last_login", "roles", "links"]
    readonly_fields = fields
    acts = [
        Act(
            "give-role",
            "Give a role",
            "A second person has to confirm it. It takes effect with their next request.",
            _role_give_act,
            RoleForm,
        ),
        Act("take-role", "Take a role", "Takes effect with their next request.", _role_take_act, RoleForm, danger=True),
        Act(
            "deactivate",
            "End access",
            "Use this when a person leaves. They are signed out and lose every role. Actions that they approved are "
            "no longer sent.",
            _person_deactivate_act,
            PersonReasonForm,
            available=lambda obj: obj.is_active,
            danger=True,
        ),
        Act(
            "invite",
            "Invite again",
            "Makes a new invitation; the old one ends. It goes to their mail address. Without an address or without "
            "mail a second person confirms it and sees the link once.",
            _invite_act,
            available=lambda obj: obj.is_active and not has_sign_in(user=obj),
        ),
        Act(
            "withdraw-invitation",
            "Withdraw the invitation",
            "The link stops working at once.",
            _invitation_withdraw_act,
            available=lambda obj: invitation_open(user=obj) is not None,
            danger=True,
        ),
        Act(
            "new-password",
            "Make a link for a new password",
            "For somebody who forgot their password and cannot get mail. A second person confirms it and sees the link "
            "once. Using it ends all their sessions; their second factor stays. First make sure that the request "
            "really comes from this person.",
            _password_reset_act,
            available=lambda obj: obj.is_active and has_sign_in(user=obj),
        ),
        Act(
            "reactivate",
            "Give access again",
            "The account is open again, without roles and without a password. A second person has to confirm it.",
            _person_reactivate_act,
            PersonPlaceForm,
            available=lambda obj: not obj.is_active,
        ),
        Act(
            "reset-sign-in",
            "Reset the sign-in",
            "Use this for a lost phone or a stolen session. It ends every session, removes second factors and "
            "passkeys, and unlocks the account. The password stays. First make sure that the request really comes "
            "from this person.",
            _sign_in_reset_act,
            PersonReasonForm,
            danger=True,
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Operators see the people of their own organizations. An administrator of the installation sees all."""
        return people_with_roles(
            people=super().get_queryset(request) if request.user.is_superuser else people_in_scope()
        )

    def _operates(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> bool:
        # A person has no single organization. The role acts check the organization of the chosen role, and the services
        # of the other acts check all organizations of the person.
        return super()._operates(request, None, **kwargs)

    @admin.display(description="Roles")
    def roles(self, obj: User) -> str:
        return ", ".join(sorted(group.name for group in obj.groups.all())) or "none"

    @admin.display(description="One-time links")
    def links(self, obj: User) -> str:
        told = [(link_told(link),) for link in sign_in_links_of(user=obj)]
        return format_html_join(mark_safe("<br>"), "{}", told) if told else "none"


# Groups are how roles are stored: an edit here would change roles without a ledger entry.
admin.site.unregister(Group)

# allauth's own admin pages would change second factors and sessions without our services.
for model in (EmailAddress, EmailConfirmation, Authenticator, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
