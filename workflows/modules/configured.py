"""Settings of modules: hosts on private networks that they may have, whether every key must be bound to one; and the
secrets with which calls are signed."""

from collections.abc import Iterable
from secrets import token_bytes
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from attempts.execution.adapters.base import derived_keys, secret_text
from governance.outside.configured import demo_allowed


def module_private_hosts() -> frozenset[str]:
    """As of webhooks, and for the same reason: an organization's operator chooses a module's address. In the demo also
    the host of its targets."""
    listed = {str(entry).lower() for entry in getattr(settings, "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE", ())}
    demo = [getattr(settings, name, "") for name in ("HOLDPOINT_DEMO_WEBHOOK", "HOLDPOINT_DEMO_TARGET")]
    return frozenset(listed | {host for url in demo if demo_allowed() and (host := _host(str(url)))})


def _host(url: str) -> str:
    try:
        parsed = urlsplit(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
    except ValueError:
        return ""
    return f"{parsed.hostname}:{port}" if parsed.hostname else ""


def bound_keys_only() -> bool:
    """Whether a key that is bound to no module may answer steps."""
    return bool(getattr(settings, "HOLDPOINT_BOUND_KEYS_ONLY", False))


# Part of the derivation: a key for another purpose must never come out the same. Changing it invalidates all secrets.
MODULE_PURPOSE = "holdpoint.module.v1"
SALT_BYTES = 32


def module_salt() -> bytes:
    return token_bytes(SALT_BYTES)


def module_secret(module_id: UUID, salt: bytes) -> str:
    """The secret in clear, for the one answer that shows it."""
    return secret_text(_keys(module_id, salt)[0])


def module_keys(module_id: UUID, salts: Iterable[bytes]) -> list[bytes]:
    """All keys that sign now, the newest secret first."""
    return [key for salt in salts for key in _keys(module_id, salt)]


def _keys(module_id: UUID, salt: bytes) -> list[bytes]:
    return derived_keys(f"{MODULE_PURPOSE}:{module_id}:{bytes(salt).hex()}")
