"""Request id, W3C trace context and spans: what connects everything that one request caused."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Literal
from uuid import UUID

import structlog

from reasoncodes.base.ids import uuid7

TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
# Request ids come from callers and go into logs and the ledger, so only harmless characters are accepted.
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    request_id: str
    trace_id: str
    span_id: str
    flags: str = "01"
    parent_id: str = ""  # the caller's span, if it sent one

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


_current: ContextVar[TraceContext | None] = ContextVar("holdpoint_trace", default=None)


def current_trace() -> TraceContext | None:
    """The trace of the request or task that this code runs in."""
    return _current.get()


def read_trace(*, request_id: str, traceparent: str) -> TraceContext:
    """From the two headers. A malformed value is replaced, never repeated."""
    match = TRACEPARENT.fullmatch(traceparent.strip())
    trace_id, parent_id, flags = match.groups() if match else (token_hex(16), "", "01")
    known = REQUEST_ID.fullmatch(request_id)
    return TraceContext(request_id if known else str(uuid7()), trace_id, token_hex(8), flags, parent_id)


def _set_trace(trace: TraceContext) -> None:
    """Another span of the same trace; the ids in log lines stay the same."""
    _current.set(trace)


def bind_trace(trace: TraceContext) -> None:
    """Makes it the current trace, for log lines too."""
    _current.set(trace)
    structlog.contextvars.bind_contextvars(request_id=trace.request_id, trace_id=trace.trace_id)


@contextmanager
def lines_about(**ids: UUID | str | None) -> Iterator[None]:
    """Every log line inside names these ids. Ids only, never what somebody wrote."""
    with structlog.contextvars.bound_contextvars(**{name: str(one) for name, one in ids.items() if one is not None}):
        yield


def bind_ids(**ids: UUID | None) -> None:
    """For the entry point of a request that was about something with an id: its own line names it too."""
    structlog.contextvars.bind_contextvars(**{name: str(one) for name, one in ids.items() if one is not None})


def trace_or_new() -> TraceContext:
    """For work that must have a trace although no request started it."""
    return current_trace() or read_trace(request_id="", traceparent="")


def clear_trace() -> None:
    _current.set(None)
    structlog.contextvars.clear_contextvars()


@contextmanager
def trace_of(trace_id: str) -> Iterator[None]:
    """Work that somebody else's request caused: its spans, log lines and calls belong to that request's trace."""
    outer = current_trace()
    if TRACE_ID.fullmatch(trace_id) is None or (outer is not None and outer.trace_id == trace_id):
        yield
        return
    bind_trace(TraceContext(str(uuid7()), trace_id, token_hex(8)))
    try:
        yield
    finally:
        clear_trace()
        if outer is not None:
            bind_trace(outer)


Kind = Literal["server", "consumer", "client"]


@dataclass(frozen=True, slots=True)
class FinishedSpan:
    trace: TraceContext
    name: str
    kind: Kind
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, str | int]
    error: str = ""


Collector = Callable[[FinishedSpan], None]
_collector: Collector | None = None


def collect_spans(collector: Collector | None) -> None:
    """Wiring: where finished spans go from now on, in this process and the processes that it forks."""
    global _collector
    _collector = collector


def spans_collected() -> bool:
    return _collector is not None


def span_finished(
    *, trace: TraceContext, name: str, kind: Kind, began_ns: int, error: str = "", **attributes: str | int
) -> None:
    """Reports the span of a whole request or task, under the trace that it ran in."""
    if _collector is not None:
        _collector(FinishedSpan(trace, name, kind, began_ns, time.time_ns(), attributes, error))


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[None]:
    """A span around a call to the outside. What is sent meanwhile has this span as its parent."""
    outer = current_trace()
    if _collector is None or outer is None:
        yield
        return
    inner = replace(outer, span_id=token_hex(8), parent_id=outer.span_id)
    began, error = time.time_ns(), ""
    _set_trace(inner)
    try:
        yield
    # Also KeyboardInterrupt and SystemExit: the span must say that the call was cut off. Only the class is kept,
    # because an exception's text may contain values.
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        _set_trace(outer)
        span_finished(trace=inner, name=name, kind="client", began_ns=began, error=error, **attributes)
