"""System checks: what must be true of the wiring before a process may start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register


@register(Tags.security, deploy=True)
def production_is_not_a_demo(**_: Any) -> list[CheckMessage]:
    if settings.DEMO_ALLOWED:
        return [Error("The demo is allowed; use config.settings.production.", id="holdpoint.E001")]
    return []


@register(Tags.security, deploy=True)
def metrics_are_guarded(**_: Any) -> list[CheckMessage]:
    if not settings.METRICS_TOKEN:
        return [Error("HOLDPOINT_METRICS_TOKEN is empty: /metrics would be open.", id="holdpoint.E002")]
    return []
