"""Where this deployment keeps copies of its records."""

from django.conf import settings


def standby_regions() -> list[str]:
    """The regions of standbys and replicas, each once."""
    return sorted(set(settings.STANDBY_REGIONS))
