"""Settings of notifications: the public URL and the address of Slack's API."""

from django.conf import settings

from attempts.execution.configured import slack_private_hosts

SLACK = "https://slack.com/api/"


def public_url() -> str:
    """The URL at which people reach this installation; empty if it is not set."""
    return str(settings.PUBLIC_URL).rstrip("/")


def slack_base() -> tuple[str, frozenset[str]]:
    """The address of the API, and the hosts for which private addresses are allowed."""
    own = str(settings.HOLDPOINT_SLACK_BASE_URL or SLACK)
    return own if own.endswith("/") else f"{own}/", slack_private_hosts()
