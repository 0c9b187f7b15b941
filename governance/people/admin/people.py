"""People and their roles in the console: add a person, give and take roles, end access, reset a sign-in. Also removes
the admin pages of Django's groups and allauth's tables."""

from typing import Any

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from governance.authority.admin import waits_for_second
from governance.authority.services.changes import authority_act
from governance.console.admin.base import Act, ConsoleAdmin, console_actor
from governance.console.admin.forms import ConsoleForm, ReasonForm
from governance.console.selectors.pages import organization_choices, people_in_scope, people_with_roles, roles_in_scope
from governance.people.models import User
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
    email = forms.EmailField(required=False, widget=UnfoldAdminTextInputWidget)
    role: Any = forms.ModelChoiceField(
        queryset=None,
        widget=UnfoldAdminSelectWidget,
        help_text="Their first role. Without a role, only an administrator of the installation can see them.",
    )
    password = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget,
        help_text="At least twelve characters. If you leave it empty, they cannot sign in yet.",
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

    def clean_password(self) -> str:
        """Checked here too, so that a weak password is an error beside the field. The service checks it again."""
        password: str = self.cleaned_data["password"]
        if password:
            validate_password(password, User(username=self.cleaned_data.get("username", "")))
        return password


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
        private={"password": data["password"] or None},
    )
    if outcome.applied is None:
        return waits_for_second(request, outcome)
    return model_admin.done(request, outcome.applied.made, f"{data['username']} was created as {row.role}.")


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
        "They get one role now and more later. Unless the organization is still being founded, a second person has to "
        "confirm it.",
        _person_create_act,
        PersonForm,
    )
    list_display = ["username", "is_staff", "is_active", "roles", "last_login"]
    list_filter = ["is_staff", "is_active"]
    search_fields = ["username", "=id"]
    fields = ["username", "is_staff", "is_active", "last_login", "roles"]
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


# Groups are how roles are stored: an edit here would change roles without a ledger entry.
admin.site.unregister(Group)

# allauth's own admin pages would change second factors and sessions without our services.
for model in (EmailAddress, EmailConfirmation, Authenticator, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
