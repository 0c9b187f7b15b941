"""Who is calling: a bearer key first (so that anonymous is 401), then the browser session."""

from typing import Any

from django.utils import timezone
from rest_framework.authentication import (
    BaseAuthentication,
)
from rest_framework.authentication import (
    SessionAuthentication as DrfSessionAuthentication,
)
from rest_framework.request import Request

from governance.selectors import Credential, credential_for_secret
from governance.services.api_key import api_key_touch
from reasoncodes.errors import CredentialMissing

BEARER = "bearer "


def bearer_secret(header: str) -> str | None:
    """The key from an Authorization header; None when the header is no bearer header at all."""
    if not header.lower().startswith(BEARER):
        return None
    return header[len(BEARER) :].strip()


class ServicePrincipal:
    """What DRF calls the user of a key: authenticated, and no person."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    pk = None

    def __init__(self, credential: Credential) -> None:
        self.credential = credential


class ApiKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        secret = bearer_secret(request.headers.get("Authorization", ""))
        if secret is None:
            return None
        now = timezone.now()
        credential = credential_for_secret(secret=secret, at=now)
        if credential is None:
            raise CredentialMissing
        api_key_touch(key=credential.key, at=now)
        return ServicePrincipal(credential), credential

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="holdpoint"'


class SessionAuthentication(DrfSessionAuthentication):
    """Django's session, with CSRF enforced as DRF does."""
