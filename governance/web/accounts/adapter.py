"""What allauth asks us: nobody signs up, nothing is mailed, the secrets of second factors are stored encrypted."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal.httpkit import get_client_ip
from allauth.mfa.adapter import DefaultMFAAdapter
from django.http import HttpRequest

from governance.secret_box import seal, unseal

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
