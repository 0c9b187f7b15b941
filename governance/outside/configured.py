"""Settings that several apps need: the address of Valkey, the secret keys, whether the demo is allowed."""

from django.conf import settings


def valkey_url() -> str:
    return str(settings.REDIS_URL)


def secret_keys() -> list[str]:
    """The current secret first, then former ones that are still accepted."""
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def demo_allowed() -> bool:
    return bool(settings.DEMO_ALLOWED)
