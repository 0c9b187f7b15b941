"""Stretches of work within a trace, for whoever collects them. Nothing is measured unless a collector is installed.

Names and attributes are words of ours (routes, task and adapter names, codes): never what a caller wrote.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Literal

from reasoncodes.trace import TraceContext, current_trace, set_trace

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
    """Wiring: where finished spans go from now on, in this process and those it forks."""
    global _collector
    _collector = collector


def spans_collected() -> bool:
    return _collector is not None


def span_finished(
    *, trace: TraceContext, name: str, kind: Kind, began_ns: int, error: str = "", **attributes: str | int
) -> None:
    """The whole of what a request or task did, under the trace that it ran in."""
    if _collector is not None:
        _collector(FinishedSpan(trace, name, kind, began_ns, time.time_ns(), attributes, error))


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[None]:
    """A call to the outside. What is sent meanwhile carries this span as its parent."""
    outer = current_trace()
    if _collector is None or outer is None:
        yield
        return
    inner = replace(outer, span_id=token_hex(8), parent_id=outer.span_id)
    began, error = time.time_ns(), ""
    set_trace(inner)
    try:
        yield
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        set_trace(outer)
        span_finished(trace=inner, name=name, kind="client", began_ns=began, error=error, **attributes)
