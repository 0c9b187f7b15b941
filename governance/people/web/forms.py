"""Sign-in forms. A wrong code counts towards the same lockout as a wrong password. Our services set passwords, so that
each change is on the ledger."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import ChangePasswordForm, LoginForm
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.signals import user_login_failed
from django.utils import timezone

from governance.people.models import User
from governance.people.services.links import password_change


class SignInForm(LoginForm):
    """Also accepts the field `username`, for programs that were written for Django's own sign-in form."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        data = kwargs.get("data")
        if data is not None and "login" not in data and "username" in data:
            kwargs["data"] = data.copy()
            kwargs["data"]["login"] = data["username"]
        super().__init__(*args, **kwargs)


class _Counted:
    """A wrong code is a failed sign-in. Somebody who is locked out cannot try codes."""

    user: User

    def clean_code(self) -> str:
        if not AxesProxyHandler.is_allowed(context.request, {"username": self.user.username}):
            context.request.axes_locked_out = True
            # Checked before the code: otherwise a locked-out attacker could still try all codes.
            raise get_adapter().validation_error("too_many_login_attempts")
        code: str = super().clean_code()  # type: ignore[misc]
        return code

    def _emit_authentication_failed(self, authenticator: Any) -> None:
        super()._emit_authentication_failed(authenticator)  # type: ignore[misc]
        # axes counts this signal, in the database; allauth's own count is per process.
        user_login_failed.send(sender=__name__, credentials={"username": self.user.username}, request=context.request)


class CodeForm(_Counted, AuthenticateForm):
    pass


class CodeAgainForm(_Counted, ReauthenticateForm):
    pass


class PasswordChangeForm(ChangePasswordForm):
    def save(self) -> None:
        password_change(
            at=timezone.now(),
            user=self.user,
            password=self.cleaned_data["password1"],
            current_key=context.request.session.session_key,
        )


class PasskeyForm(AddWebAuthnForm):
    """Whoever has no password must be able to sign in with the passkey alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.user.has_usable_password():
            self.fields["passwordless"].initial = True
            self.fields["passwordless"].required = True


class LinkForm(forms.Form):
    """A password, twice. Checked here too, so that a weak one is an error beside the field; the service checks it
    again."""

    new = forms.CharField(
        label="Password",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        strip=False,
        help_text="At least twelve characters.",
    )
    again = forms.CharField(
        label="The same password again", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), strip=False
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_new(self) -> str:
        password: str = self.cleaned_data["new"]
        validate_password(password, self.user)
        return password

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if "new" in self.cleaned_data and again != self.cleaned_data["new"]:
            raise forms.ValidationError("The two passwords are not the same.")
        return again


class PasswordResetForm(forms.Form):
    typed = forms.CharField(
        label="Username or mail address",
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}),
    )
