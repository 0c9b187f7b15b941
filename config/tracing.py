"""Spans to an OpenTelemetry collector, if OTEL_EXPORTER_OTLP_ENDPOINT names one.

The ids are those of our own trace context, so that a span, a log line, a ledger entry and the caller's `traceparent`
share them. Only the attributes listed here are exported.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

import structlog
from celery.signals import worker_process_shutdown
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created

from config.env import env
from reasoncodes.base.trace import FinishedSpan, collect_spans, span

log = structlog.get_logger("holdpoint.tracing")
# Routes, names and codes; never a value from the database, an address or somebody's text.
ATTRIBUTES = frozenset(
    {
        "db.operation.name",
        "db.system.name",
        "holdpoint.adapter",
        "holdpoint.task",
        "http.request.method",
        "http.response.status_code",
        "http.route",
        "messaging.operation.name",
    }
)
STATEMENTS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET"})


def tracing_start() -> None:
    """Wiring, before the first request or task. Without an endpoint nothing is measured."""
    if not (
        env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="") or env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
    ):
        return
    try:
        import opentelemetry.sdk.trace  # noqa: F401
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: F401
    except ImportError as error:
        raise ImproperlyConfigured(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, OpenTelemetry is missing: install requirements/prod.txt, or unset it."
        ) from error
    exporter = ProcessOwn(make=otlp_export)
    collect_spans(exporter)
    connection_created.connect(watch_statements)
    worker_process_shutdown.connect(exporter.flush, weak=False)


class ProcessOwn:
    """One exporter per process, created at its first span: the exporter has a thread, which would not survive a
    fork."""

    def __init__(self, *, make: Callable[[], "OtelExport"]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._export: OtelExport | None = None

    def __call__(self, finished: FinishedSpan) -> None:
        try:
            if self._pid != os.getpid():
                self._begin()
            if self._export is not None:
                self._export(finished)
        except Exception as error:  # tracing must never fail a request or a task
            log.warning("span_not_collected", exc_info=error)

    def _begin(self) -> None:
        # Two threads may finish the first span of a process at once; the second look keeps them from making two
        # exporters.
        with self._lock:
            if self._pid != os.getpid():
                self._export, self._pid = self._make(), os.getpid()

    def flush(self, **_: Any) -> None:
        if self._export is not None and self._pid == os.getpid():
            self._export.flush()


def otlp_export() -> "OtelExport":
    """Batches over HTTP. Address, headers and limits come from the standard OTEL_ variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return OtelExport(BatchSpanProcessor(OTLPSpanExporter()))


class OtelExport:
    """Finished spans as OpenTelemetry's. It has its own provider and not the process-wide one, so that no library's
    spans get in."""

    def __init__(self, processor: Any) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        self._now = threading.local()
        name = env.str("OTEL_SERVICE_NAME", default="holdpoint")
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}), id_generator=self._our_ids())
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("holdpoint")

    def __call__(self, finished: FinishedSpan) -> None:
        from opentelemetry.trace import SpanKind, StatusCode

        if not int(finished.trace.flags, 16) & 1:
            return  # the caller decided not to sample this trace
        # The SDK asks a generator for ids instead of taking them as arguments; it is called in this thread.
        self._now.trace = finished.trace
        made = self._tracer.start_span(
            finished.name,
            context=_parent(finished),
            kind=SpanKind[finished.kind.upper()],
            attributes=allowed(finished),
            start_time=finished.began_ns,
        )
        if finished.error:
            made.set_status(StatusCode.ERROR)
        made.end(finished.ended_ns)

    def flush(self) -> None:
        self._provider.force_flush(timeout_millis=3000)

    def _our_ids(self) -> Any:
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        now = self._now

        class OurIds(RandomIdGenerator):
            def generate_span_id(self) -> int:
                return int(now.trace.span_id, 16)

            def generate_trace_id(self) -> int:
                return int(now.trace.trace_id, 16)

        return OurIds()


def _parent(finished: FinishedSpan) -> Any:
    """The parent's context, also if it is empty: by default the SDK would use the current context, which may be a
    library's."""
    from opentelemetry import trace as otel
    from opentelemetry.context import Context

    if not finished.trace.parent_id:
        return Context()
    parent = otel.SpanContext(
        int(finished.trace.trace_id, 16),
        int(finished.trace.parent_id, 16),
        is_remote=True,
        trace_flags=otel.TraceFlags(otel.TraceFlags.SAMPLED),
    )
    return otel.set_span_in_context(otel.NonRecordingSpan(parent), Context())


def allowed(finished: FinishedSpan) -> dict[str, str | int]:
    kept = {name: value for name, value in finished.attributes.items() if name in ATTRIBUTES}
    return kept | ({"error.type": finished.error} if finished.error else {})


def watch_statements(connection: Any = None, **_: Any) -> None:
    if statement_span not in connection.execute_wrappers:
        connection.execute_wrappers.append(statement_span)


def statement_span(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
    """Records the first word of the statement; neither its text nor its parameters."""
    word = sql.split(None, 1)[0].upper() if isinstance(sql, str) and sql.strip() else ""
    word = word if word in STATEMENTS else "other"
    with span(f"postgresql {word}", **{"db.system.name": "postgresql", "db.operation.name": word}):
        return execute(sql, params, many, context)
