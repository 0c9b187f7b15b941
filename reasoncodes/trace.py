"""Request id and W3C trace context: what ties together everything one request caused."""

import re
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex

import structlog

from reasoncodes.ids import uuid7

TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    request_id: str
    trace_id: str
    span_id: str
    flags: str = "01"
    parent_id: str = ""  # the caller's span, when it named one

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


_current: ContextVar[TraceContext | None] = ContextVar("holdpoint_trace", default=None)


def current_trace() -> TraceContext | None:
    """The trace of the request or task that this code runs in."""
    return _current.get()


def read_trace(*, request_id: str, traceparent: str) -> TraceContext:
    """From the two headers; what is malformed is replaced, never repeated."""
    match = TRACEPARENT.fullmatch(traceparent.strip())
    trace_id, parent_id, flags = match.groups() if match else (token_hex(16), "", "01")
    known = REQUEST_ID.fullmatch(request_id)
    return TraceContext(request_id if known else str(uuid7()), trace_id, token_hex(8), flags, parent_id)


def set_trace(trace: TraceContext) -> None:
    """Another place in the same trace: log lines stay as they are."""
    _current.set(trace)


def bind_trace(trace: TraceContext) -> None:
    """Make it the current one, in logs too."""
    _current.set(trace)
    structlog.contextvars.bind_contextvars(request_id=trace.request_id, trace_id=trace.trace_id)


def trace_or_new() -> TraceContext:
    """For what must carry a trace although it was not started by a request."""
    return current_trace() or read_trace(request_id="", traceparent="")


def clear_trace() -> None:
    _current.set(None)
    structlog.contextvars.clear_contextvars()
