"""Our answers to allauth: nobody signs up, nothing is mailed, secrets of second factors are stored encrypted. Also
whether a person signed in recently enough to decide on a high-risk action (step-up)."""

from datetime import UTC, datetime, timedelta
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

UNKNOWN = "0.0.0.0"  # noqa: S104  # over a Unix socket there is no address; the lockout then counts by username alone


def client_ip(request: HttpRequest) -> str:
    """The address for lockouts and sessions. Forwarded addresses count only behind HOLDPOINT_TRUSTED_PROXIES
    proxies."""
    return get_client_ip(request) or UNKNOWN


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sends nothing: people get their accounts and passwords from their operators."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_ip(request)


class SecondFactorAdapter(DefaultMFAAdapter):
    """Somebody who reads only the database cannot make codes. After a change of SECRET_KEY people set up their apps
    again."""

    def encrypt(self, text: str) -> str:
        return seal(text, purpose="second factor")

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text, purpose="second factor")


def authenticated_at(request: Any) -> datetime | None:
    """When the person of this session last proved who they are: by password, code or passkey."""
    newest = max((record.get("at", 0) for record in get_authentication_records(request, request.user)), default=0)
    return datetime.fromtimestamp(newest, tz=UTC) if newest else None


def signed_in_recently(request: Any, *, at: datetime) -> bool:
    """Whether that was within HOLDPOINT_STEP_UP_MINUTES."""
    newest = authenticated_at(request)
    return newest is not None and at - newest < timedelta(minutes=settings.STEP_UP_MINUTES)


def rp_id_of(request: Any) -> str:
    """The name that this site's passkeys belong to: its host, without the port."""
    host: str = request.get_host()
    return host.partition(":")[0]


def step_up_url(*, back: str) -> str:
    """The page where the person signs in again; afterwards they return to `back`."""
    return reverse("account_reauthenticate") + "?" + urlencode({"next": back})
