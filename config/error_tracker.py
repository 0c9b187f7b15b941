"""Errors to a Sentry-compatible tracker, if SENTRY_DSN names one: class, place and trace, never a value.

The SDK's integrations stay off, because they collect requests, statements and log arguments first and filter
afterwards. Here an event contains only what `reduced` puts into it. Exceptions logged at `error` or above are sent.
"""

from collections.abc import Mapping
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured

from config.env import env
from config.logs import report_exceptions_to
from reasoncodes.base.trace import current_trace

KEPT = ("event_id", "timestamp", "platform", "level", "release", "environment", "sdk")
FRAME = ("filename", "module", "function", "lineno", "in_app")
TAGS = ("request_id", "trace_id", "logger", "line", "task")


def tracker_start() -> None:
    """Wiring. Without SENTRY_DSN nothing is sent."""
    dsn = env.str("SENTRY_DSN", default="")
    if not dsn:
        return
    try:
        import sentry_sdk
    except ImportError as error:
        raise ImproperlyConfigured(
            "SENTRY_DSN is set and sentry-sdk is missing: install requirements/prod.txt or unset it."
        ) from error
    sentry_sdk.init(dsn=dsn, **tracker_options())
    report_exceptions_to(error_report)


def tracker_options() -> dict[str, Any]:
    """Turns off every option of the SDK through which a value could leave. `reduced` is the second line of defence."""
    return {
        "environment": env.str("SENTRY_ENVIRONMENT", default="production"),
        "release": env.str("SENTRY_RELEASE", default="") or None,
        "default_integrations": False,
        "auto_enabling_integrations": False,
        "integrations": [],
        "include_local_variables": False,
        "include_source_context": False,
        "max_request_body_size": "never",
        "max_breadcrumbs": 0,
        "auto_session_tracking": False,
        "enable_logs": False,
        "enable_backpressure_handling": False,
        "traces_sample_rate": None,
        "server_name": "",
        "before_send": reduced,
        "before_send_transaction": lambda event, hint: None,
        "before_breadcrumb": lambda crumb, hint: None,
    }


def error_report(error: BaseException, line: Mapping[str, Any]) -> None:
    """One event for one log line that has an exception."""
    import sentry_sdk
    from sentry_sdk.utils import event_from_exception

    event, hint = event_from_exception(error, client_options=sentry_sdk.get_client().options)
    trace, logger = current_trace(), str(line.get("logger") or "")
    found: Any = {
        "request_id": trace.request_id if trace else None,
        "trace_id": trace.trace_id if trace else None,
        "logger": logger,
        # A library may have written a value into its line; our own lines are fixed words.
        "line": line.get("event") if logger.startswith("holdpoint.") else None,
        "task": structlog.contextvars.get_contextvars().get("task"),
    }
    level: Any = line.get("level", "error")
    sentry_sdk.capture_event({**event, "level": level, "tags": found}, hint=hint)


def reduced(event: Any, hint: Any) -> Any:
    """The event, built anew from what is known to contain no value."""
    # An allow list: a field that a new version of the SDK adds does not leave.
    kept = {name: event[name] for name in KEPT if name in event}
    kept["tags"] = {name: value for name, value in dict(event.get("tags") or {}).items() if name in TAGS and value}
    found = (event.get("exception") or {}).get("values") or []
    kept["exception"] = {"values": [_exception(one) for one in found]}
    return kept


def _exception(one: Mapping[str, Any]) -> dict[str, Any]:
    """Without its text, which may repeat what was submitted, or a row."""
    frames = (one.get("stacktrace") or {}).get("frames") or []
    return {
        "type": one.get("type"),
        "module": one.get("module"),
        "stacktrace": {"frames": [{name: frame.get(name) for name in FRAME} for frame in frames]},
    }
