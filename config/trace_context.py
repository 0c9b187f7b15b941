"""Carries the trace of a request into the Celery tasks that it caused, and binds it to their log lines."""

from typing import Any

import structlog
from celery.signals import before_task_publish, task_postrun, task_prerun

from reasoncodes.trace import bind_trace, clear_trace, current_trace, read_trace

HEADER = "holdpoint_trace"


@before_task_publish.connect
def carry_trace(headers: dict[str, Any] | None = None, **_: Any) -> None:
    trace = current_trace()
    if headers is not None and trace is not None:
        headers[HEADER] = {"request_id": trace.request_id, "traceparent": trace.traceparent}


@task_prerun.connect
def restore_trace(task: Any = None, task_id: str = "", **_: Any) -> None:
    clear_trace()
    carried = getattr(task.request, HEADER, None) or {}
    bind_trace(read_trace(request_id=carried.get("request_id", ""), traceparent=carried.get("traceparent", "")))
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def forget_trace(**_: Any) -> None:
    clear_trace()
