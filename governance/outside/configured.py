"""Settings that every app stands on, read in one place: the key-value server's address, the secrets, the demo."""

from django.conf import settings


def valkey_url() -> str:
    return str(settings.REDIS_URL)


def secret_keys() -> list[str]:
    """The secret that is in force first, then the former ones that are still good."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def demo_allowed() -> bool:
    return bool(settings.DEMO_ALLOWED)
