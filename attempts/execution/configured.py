"""Where calls go: settings, read in one place. A route is `<organization slug>/<contract slug>`."""

import os
import signal
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from governance.outside.configured import demo_allowed


def http_target(route: str) -> str:
    """The URL for a route; the demo's target when none is set and the demo is allowed; otherwise nothing."""
    return _mapping("HOLDPOINT_HTTP_TARGETS").get(route, "") or _demo_target()


def http_private_hosts() -> frozenset[str]:
    """`host` or `host:port` that may be in a private network or speak plain http, because an operator said so."""
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


def _demo_target() -> str:
    return str(getattr(settings, "HOLDPOINT_DEMO_TARGET", "")) if demo_allowed() else ""


def _mapping(name: str) -> dict[str, Any]:
    return dict(getattr(settings, name, {}) or {})


VARIABLE = "HOLDPOINT_CRASH_AT"


def crash_point(name: str) -> None:
    if os.environ.get(VARIABLE) == name and demo_allowed():
        os.kill(os.getpid(), signal.SIGKILL)
