"""Settings of the ways out, read in one place."""

from urllib.parse import urlsplit

from django.conf import settings

from attempts.execution.configured import http_private_hosts

SLACK = "https://slack.com/api/"


def public_url() -> str:
    """Where people reach this installation; empty when nobody has said."""
    return str(settings.PUBLIC_URL).rstrip("/")


def slack_base() -> tuple[str, frozenset[str]]:
    """The API's address, and the hosts that may be private: one that an operator set by hand may be."""
    own = str(settings.HOLDPOINT_SLACK_BASE_URL or "")
    if not own:
        return SLACK, http_private_hosts()
    parts = urlsplit(own)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return own if own.endswith("/") else f"{own}/", http_private_hosts() | {f"{parts.hostname}:{port}"}
