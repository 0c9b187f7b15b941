"""Proving again who one is, inside another request: by passkey, code or password. A success is recorded in the session
as on allauth's own page; a failure counts towards the same lockout."""

import json
from typing import Any

from allauth.account.forms import ReauthenticateForm
from allauth.account.internal.flows.reauthentication import reauthenticate_by_password
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import ReauthenticateWebAuthnForm
from allauth.mfa.webauthn.internal import auth
from axes.handlers.proxy import AxesProxyHandler
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from governance.people.models import User
from governance.people.selectors.sign_in import second_factors
from governance.people.web.forms import CodeAgainForm

PASSKEY, CODE, PASSWORD = "passkey", "code", "password"
LOCKED = "Too many wrong tries. Wait for a quarter of an hour."


def proof_kind(user: User) -> str:
    """How this person proves who they are: a passkey first, else a code, else the password."""
    kinds = second_factors(user_id=user.id)
    if Authenticator.Type.WEBAUTHN in kinds:
        return PASSKEY
    return CODE if Authenticator.Type.TOTP in kinds else PASSWORD


def passkey_options(user: User) -> dict[str, Any]:
    """The options for `navigator.credentials.get`. The challenge is kept in the session."""
    found: dict[str, Any] = json.loads(json.dumps(auth.begin_authentication(user), default=dict))
    options: dict[str, Any] = found["publicKey"]
    return options


def proof_check(request: HttpRequest, *, user: User, kind: str, value: str) -> str:
    """Empty if the person has proven who they are; else what to tell them."""
    if not AxesProxyHandler.is_allowed(request, {"username": user.username}):
        return LOCKED
    if kind == PASSKEY:
        return _by_form(ReauthenticateWebAuthnForm({"credential": value}, user=user))
    if kind == CODE:
        return _by_form(CodeAgainForm({"code": value}, user=user))
    wrong = _by_form(ReauthenticateForm({"password": value}, user=user), save=False)
    if getattr(request, "axes_locked_out", None):
        # Otherwise the middleware would replace the prompt by a whole page, which no script shows.
        request.axes_locked_out = None  # type: ignore[attr-defined]
        return LOCKED
    if not wrong:
        reauthenticate_by_password(request)
    return wrong


def _by_form(form: Any, *, save: bool = True) -> str:
    try:
        valid = form.is_valid()
    except ValidationError as error:
        return " ".join(error.messages)
    if not valid:
        return " ".join(str(message) for found in form.errors.values() for message in found)
    if save:
        form.save()
    return ""
