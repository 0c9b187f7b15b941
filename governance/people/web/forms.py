"""Sign-in forms. A wrong code counts towards the same lockout as a wrong password."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import LoginForm
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth.signals import user_login_failed

from governance.people.models import User


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
