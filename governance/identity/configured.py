"""Settings of sign-in by a provider: hosts that may be private, and how fresh a sign-in must be."""

from datetime import timedelta

from django.conf import settings


def private_hosts() -> frozenset[str]:
    """Hosts, or host:port, that discovery and token requests may reach although their address is not public."""
    return frozenset(str(entry).lower() for entry in settings.IDENTITY_ALLOW_PRIVATE)


def fresh_for() -> timedelta:
    """A sign-in by a provider counts as proof of the person, so it may not be older than a step-up."""
    return timedelta(minutes=settings.STEP_UP_MINUTES)
