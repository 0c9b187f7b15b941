"""Settings: targets of the adapters by route (`<organization slug>/<contract slug>`), the region of this deployment;
and crash points for tests."""

import os
import signal
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from governance.outside.configured import demo_allowed


def http_target(route: str) -> str:
    """The URL of a route. If none is set, the demo's target where the demo is allowed, else empty."""
    return _mapping("HOLDPOINT_HTTP_TARGETS").get(route, "") or _demo_target()


def http_private_hosts() -> frozenset[str]:
    """`host` or `host:port` for which an operator allows private addresses and plain http."""
    listed = {str(entry).lower() for entry in getattr(settings, "HOLDPOINT_HTTP_ALLOW_PRIVATE", ())}
    demo = urlsplit(_demo_target())
    return frozenset(listed | ({f"{demo.hostname}:{demo.port}"} if demo.hostname else set()))


def email_target(route: str) -> str:
    return _mapping("HOLDPOINT_EMAIL_TARGETS").get(route, "")


def slack_channel(route: str) -> str:
    return _mapping("HOLDPOINT_SLACK_CHANNELS").get(route, "")


def slack_connection() -> tuple[str, str]:
    """(base URL, token)"""
    base = str(getattr(settings, "HOLDPOINT_SLACK_BASE_URL", "") or "https://slack.com/api/")
    return base if base.endswith("/") else f"{base}/", str(getattr(settings, "HOLDPOINT_SLACK_TOKEN", ""))


def slack_private_hosts() -> frozenset[str]:
    """An address that an operator has set by hand may be private."""
    own = str(getattr(settings, "HOLDPOINT_SLACK_BASE_URL", "") or "")
    if not own:
        return http_private_hosts()
    parts = urlsplit(own)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return http_private_hosts() | {f"{parts.hostname}:{port}"}


def deployment_region() -> str:
    return str(settings.DEPLOYMENT_REGION)


def _demo_target() -> str:
    return str(getattr(settings, "HOLDPOINT_DEMO_TARGET", "")) if demo_allowed() else ""


def _mapping(name: str) -> dict[str, Any]:
    return dict(getattr(settings, name, {}) or {})


VARIABLE = "HOLDPOINT_CRASH_AT"


def crash_point(name: str) -> None:
    """Kills this process at a named point, if the environment asks for it and the demo is allowed."""
    # SIGKILL, because tests prove what survives a process that ends without any clean-up.
    if os.environ.get(VARIABLE) == name and demo_allowed():
        os.kill(os.getpid(), signal.SIGKILL)
