"""The outermost middleware: binds request id and trace, and writes one log line and one metric per request."""

import time
from collections.abc import Callable
from uuid import UUID

import structlog
from django.http import HttpRequest, HttpResponse

from config.metrics import HTTP_REQUESTS, HTTP_SECONDS
from governance.boundary.rules import inspect_handle
from reasoncodes.base.trace import TraceContext, bind_trace, clear_trace, read_trace, span_finished, spans_collected

log = structlog.get_logger("holdpoint.http")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
QUIET_ROUTES = {"health", "health/ready", "metrics"}


def harmless(request_id: str) -> str:
    """A caller's request id goes into logs and into headers of the record, which cannot be erased. So one that looks
    like a person or a secret is replaced by an id of ours. It is not refused: a header must not lock a caller out."""
    return "" if request_id and inspect_handle(request_id, pointer="") else request_id


def labels(request: HttpRequest) -> tuple[str, str]:
    """Method and route."""
    # A method is any word that the caller likes. As a label it would create series without limit.
    method = request.method if request.method in METHODS else "other"
    return str(method), getattr(request.resolver_match, "route", None) or "unmatched"


def ids_in(request: HttpRequest) -> dict[str, str]:
    """The ids of the route, such as `attempt_id`. Only those that the route itself reads as ids: no text of a
    caller's."""
    found = getattr(request.resolver_match, "kwargs", None) or {}
    return {name: str(value) for name, value in found.items() if isinstance(value, UUID)}


class RequestContextMiddleware:
    """Logs the route's pattern, never the path: a path contains what the caller wrote into it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        trace = read_trace(
            request_id=harmless(request.headers.get("X-Request-ID", "")),
            traceparent=request.headers.get("traceparent", ""),
        )
        bind_trace(trace)
        started, began_ns = time.perf_counter(), time.time_ns()
        try:
            response = self.get_response(request)
            response["X-Request-ID"] = trace.request_id
            response["traceparent"] = trace.traceparent
            self._account(request, response, seconds=time.perf_counter() - started)
            if spans_collected():
                self._trace(request, response, trace=trace, began_ns=began_ns)
            return response
        finally:
            # Threads are reused: the next request must not log under this one's ids.
            clear_trace()

    @staticmethod
    def _trace(request: HttpRequest, response: HttpResponse, *, trace: TraceContext, began_ns: int) -> None:
        method, route = labels(request)
        if route in QUIET_ROUTES or route.startswith("static"):
            return
        names: dict[str, str | int] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": response.status_code,
        }
        span_finished(
            trace=trace,
            name=f"{method} {route}",
            kind="server",
            began_ns=began_ns,
            error=str(response.status_code) if response.status_code >= 500 else "",
            **names,
        )

    @staticmethod
    def _account(request: HttpRequest, response: HttpResponse, *, seconds: float) -> None:
        method, route = labels(request)
        HTTP_REQUESTS.labels(method=method, route=route, status=response.status_code).inc()
        HTTP_SECONDS.labels(route=route).observe(seconds)
        if route not in QUIET_ROUTES and not route.startswith("static"):
            log.info(
                "request",
                method=method,
                route=route,
                status=response.status_code,
                ms=round(seconds * 1000, 1),
                **ids_in(request),
            )
