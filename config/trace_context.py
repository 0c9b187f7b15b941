"""Passes the trace of a request on to the Celery tasks that it caused, and binds it to their log lines."""

import time
from collections.abc import Sequence
from contextvars import ContextVar
from inspect import signature
from typing import Any

import structlog
from celery.signals import before_task_publish, task_postrun, task_prerun

from governance.console.selectors.lists import uuid_or_none
from reasoncodes.base.trace import bind_trace, clear_trace, current_trace, read_trace, span_finished

HEADER = "holdpoint_trace"
_began_ns: ContextVar[int] = ContextVar("holdpoint_task_began", default=0)


def _about(task: Any, args: Sequence[Any]) -> dict[str, str]:
    """The one id that a task takes, by the name of its parameter: `attempt_id`. The rows say the rest."""
    # Checked: anybody with the broker's password could send something else.
    found = uuid_or_none(str(args[0])) if args else None
    name = next(iter(signature(task.run).parameters), "")
    return {name: str(found)} if found and name.endswith("_id") else {}


@before_task_publish.connect
def carry_trace(headers: dict[str, Any] | None = None, **_: Any) -> None:
    trace = current_trace()
    if headers is not None and trace is not None:
        headers[HEADER] = {"request_id": trace.request_id, "traceparent": trace.traceparent}


@task_prerun.connect
def restore_trace(task: Any = None, task_id: str = "", args: Sequence[Any] = (), **_: Any) -> None:
    # Worker processes are reused: without this a task would log under the ids of the one before.
    clear_trace()
    carried = getattr(task.request, HEADER, None) or {}
    bind_trace(read_trace(request_id=carried.get("request_id", ""), traceparent=carried.get("traceparent", "")))
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id, **_about(task, args))
    _began_ns.set(time.time_ns())


@task_postrun.connect
def forget_trace(task: Any = None, state: str | None = None, **_: Any) -> None:
    trace = current_trace()
    if trace is not None and task is not None:
        error = "" if state == "SUCCESS" else str(state or "unknown")
        names = {"messaging.operation.name": "process", "holdpoint.task": task.name}
        span_finished(trace=trace, name=task.name, kind="consumer", began_ns=_began_ns.get(), error=error, **names)
    clear_trace()
