"""Settings about people and keys."""

from datetime import timedelta

from django.conf import settings


def api_key_life() -> timedelta:
    """How long a key is valid if nobody says otherwise."""
    return timedelta(days=settings.API_KEY_DAYS)
