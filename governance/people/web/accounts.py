"""What allauth asks us: nobody signs up, nothing is mailed, the secrets of second factors are stored encrypted."""

from datetime import datetime, timedelta
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.core.internal.httpkit import get_client_ip
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from governance.outside.secret_box import seal, unseal

UNKNOWN = "0.0.0.0"  # noqa: S104  # behind a socket there is no address; a lockout is then by username alone


def client_ip(request: HttpRequest) -> str:
    """One answer for lockouts and sessions; forwarded addresses count only behind so many trusted proxies."""
    return get_client_ip(request) or UNKNOWN


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Never: people get their accounts and passwords from their operators."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_ip(request)


class SecondFactorAdapter(DefaultMFAAdapter):
    """A reader of the database alone cannot make codes. Changing SECRET_KEY makes people set up their apps again."""

    def encrypt(self, text: str) -> str:
        return seal(text, purpose="second factor")

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text, purpose="second factor")


def signed_in_recently(request: Any, *, at: datetime) -> bool:
    """A person's request, of a page or of the API: by password, code or passkey, within HOLDPOINT_STEP_UP_MINUTES."""
    records = get_authentication_records(request, request.user)
    newest = max((record.get("at", 0) for record in records), default=0)
    return at.timestamp() - newest < timedelta(minutes=settings.STEP_UP_MINUTES).total_seconds()


def step_up_url(*, back: str) -> str:
    """Where the person proves it again; `back` is where they go on."""
    return reverse("account_reauthenticate") + "?" + urlencode({"next": back})
