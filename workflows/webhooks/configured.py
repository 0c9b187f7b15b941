"""What settings say about webhooks, read in one place: hosts on private networks, and the demo's receiver."""

from urllib.parse import urlsplit

from django.conf import settings

from governance.configured import demo_allowed


def webhook_private_hosts() -> frozenset[str]:
    """`host` or `host:port`. A list of its own: an organization's operator chooses a webhook's URL, and what the
    installation's adapters may call is not for them to reach."""
    listed = {str(entry).lower() for entry in getattr(settings, "HOLDPOINT_WEBHOOK_ALLOW_PRIVATE", ())}
    return frozenset(listed | _demo_host())


def demo_webhook() -> str:
    return str(getattr(settings, "HOLDPOINT_DEMO_WEBHOOK", "")) if demo_allowed() else ""


def _demo_host() -> set[str]:
    try:
        demo = urlsplit(demo_webhook())
        port = demo.port or (443 if demo.scheme == "https" else 80)
    except ValueError:
        return set()
    return {f"{demo.hostname}:{port}"} if demo.hostname else set()
