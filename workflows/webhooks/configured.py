"""Settings of webhooks (allowed private hosts, the demo's receiver), and the secrets, which are derived from
SECRET_KEY."""

from collections.abc import Iterable
from secrets import token_bytes
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from attempts.execution.adapters.base import derived_keys, secret_text
from governance.outside.configured import demo_allowed


def webhook_private_hosts() -> frozenset[str]:
    """Hosts on private networks that webhooks may call, as `host` or `host:port`."""
    # Not the adapters' list: an organization's operator chooses a webhook's URL, and with a shared list could reach
    # hosts that the administrator allowed for the installation only.
    listed = {str(entry).lower() for entry in getattr(settings, "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE", ())}
    return frozenset(listed | _demo_host())


def demo_webhook() -> str:
    return str(getattr(settings, "HOLDPOINT_DEMO_WEBHOOK", "")) if demo_allowed() else ""


def _demo_host() -> set[str]:
    try:
        demo = urlsplit(demo_webhook())
        port = demo.port or (443 if demo.scheme == "https" else 80)
    except ValueError:
        return set()
    return {f"{demo.hostname}:{port}"} if demo.hostname else set()


# Part of the derivation: a key for another purpose must never come out the same. Changing it invalidates all secrets.
PURPOSE = "holdpoint.webhook.v1"
SALT_BYTES = 32


def new_salt() -> bytes:
    return token_bytes(SALT_BYTES)


def secret_of(endpoint_id: UUID, salt: bytes) -> str:
    """The secret in clear, for the one answer that shows it. It is derived and never stored."""
    return secret_text(_keys(endpoint_id, salt)[0])


def keys_of(endpoint_id: UUID, salts: Iterable[bytes]) -> list[bytes]:
    """All keys that sign now, the newest secret first."""
    return [key for salt in salts for key in _keys(endpoint_id, salt)]


def _keys(endpoint_id: UUID, salt: bytes) -> list[bytes]:
    return derived_keys(f"{PURPOSE}:{endpoint_id}:{bytes(salt).hex()}")
