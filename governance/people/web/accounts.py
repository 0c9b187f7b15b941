"""Our answers to allauth and axes: nobody signs up, allauth mails nothing, secrets of second factors are stored
encrypted, typed usernames are stored hashed. Also whether a person signed in recently enough to decide on a high-risk
action (step-up)."""

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

from governance.outside.secret_box import SECOND_FACTOR, seal, unseal
from governance.people.services.people import lockout_name

UNKNOWN = "0.0.0.0"  # noqa: S104  # over a Unix socket there is no address; the lockout then counts by username alone


def client_ip(request: HttpRequest) -> str:
    """The address for lockouts and sessions. Forwarded addresses count only behind HOLDPOINT_TRUSTED_PROXIES
    proxies."""
    return get_client_ip(request) or UNKNOWN


def lockout_username(request: Any, credentials: dict[str, Any] | None = None) -> str | None:
    """What axes counts by and keeps: a keyed hash, because people type passwords and other people's names here."""
    typed = (credentials or {}).get("username")
    if typed is None:
        posted = getattr(request, "POST", {})
        typed = posted.get("login") or posted.get("username")
    return None if typed is None else lockout_name(username=str(typed))


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Sends nothing: our own one-time links are mailed by a task."""

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_ip(request)


class SecondFactorAdapter(DefaultMFAAdapter):
    """Somebody who reads only the database cannot make codes. Where the texts are stored: `governance/apps.py`."""

    def encrypt(self, text: str) -> str:
        return seal(text, purpose=SECOND_FACTOR)

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text, purpose=SECOND_FACTOR)


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
