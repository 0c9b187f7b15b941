"""Settings of the continuous check."""

from django.conf import settings


def watch_seconds() -> float:
    """How long one tick goes on with the round through the record."""
    return float(settings.RECORD_WATCH_SECONDS)
