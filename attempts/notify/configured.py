"""Settings of notifications: the public URL and the address of Slack's API."""

from urllib.parse import urlsplit

from django.conf import settings

from attempts.execution.configured import http_private_hosts

SLACK = "https://slack.com/api/"


def public_url() -> str:
    """The URL at which people reach this installation; empty if it is not set."""
    return str(settings.PUBLIC_URL).rstrip("/")


def slack_base() -> tuple[str, frozenset[str]]:
    """The address of the API, and the hosts for which private addresses are allowed."""
    # An address that an operator has set by hand may be private.
    own = str(settings.HOLDPOINT_SLACK_BASE_URL or "")
    if not own:
        return SLACK, http_private_hosts()
    parts = urlsplit(own)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return own if own.endswith("/") else f"{own}/", http_private_hosts() | {f"{parts.hostname}:{port}"}
