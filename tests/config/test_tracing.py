"""One trace from a request through the queue to the receiver, by OpenTelemetry's own exporter, and no value in it."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from django.db import connection
from django.db.backends.signals import connection_created
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from config.celery import app as celery_app
from config.tracing import STATEMENTS, OtelExport, ProcessOwn, otlp_export, statement_span, watch_statements
from governance.ledger.models import LedgerEntry
from governance.ledger.selectors import tells
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import FinishedSpan, bind_trace, clear_trace, collect_spans, current_trace, read_trace, span
from tests.attempts.execution.support import ROUTE, ask, contract
from tests.attempts.execution.target import CountingTarget
from tests.cast import Cast
from tests.stack.support import wait_for

CANARY = "zx81canary"
TRACE_ID, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TASK = "attempts.tasks.execution.attempt_dispatch"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    collect_spans(ProcessOwn(make=lambda: OtelExport(SimpleSpanProcessor(exporter))))
    connection_created.connect(watch_statements)
    yield exporter
    connection_created.disconnect(watch_statements)
    collect_spans(None)


@pytest.fixture
def target(settings: Any) -> Iterator[CountingTarget]:
    found = CountingTarget()
    settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: f"{found.url}?token={CANARY}"}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [found.host]
    yield found
    found.stop()


def spans_by_name(exporter: InMemorySpanExporter) -> dict[str, Any]:
    return {one.name: one for one in exporter.get_finished_spans() if f"{one.context.trace_id:032x}" == TRACE_ID}


@pytest.mark.django_db(transaction=True)
def test_one_trace_links_request_task_and_receiver_and_holds_no_value(
    cast: Cast, exported: InMemorySpanExporter, target: CountingTarget
) -> None:
    contract(cast)
    celery_app.control.purge()  # what earlier tests rang for
    watch_statements(connection=connection)
    headers = {"traceparent": f"00-{TRACE_ID}-{CALLER}-01", "tracestate": f"a={CANARY}", "baggage": f"b={CANARY}"}
    client = cast.api("attempts:create")
    client.credentials(HTTP_AUTHORIZATION=client._credentials["HTTP_AUTHORIZATION"], HTTP_USER_AGENT=CANARY)
    client.defaults |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    try:
        with start_worker(celery_app, perform_ping_check=False, pool="solo", loglevel="WARNING"):
            answer = ask(client, patient_context_ref=f"ctx-{CANARY}", metadata={})
            assert answer.status_code == 201, answer.content
            wait_for(lambda: TASK in spans_by_name(exported), seconds=20, what="the task's span")
    finally:
        connection.execute_wrappers.remove(statement_span)
    found = spans_by_name(exported)
    server = next(one for one in found.values() if one.kind.name == "SERVER")
    task, call = found[TASK], found["adapter http"]
    assert f"{server.parent.span_id:016x}" == CALLER
    assert task.parent.span_id == server.context.span_id
    assert call.parent.span_id == task.context.span_id
    sent = target.requests[0]["headers"]
    assert sent["traceparent"] == f"00-{TRACE_ID}-{call.context.span_id:016x}-01"
    assert answer["traceparent"] == f"00-{TRACE_ID}-{server.context.span_id:016x}-01"
    assert server.attributes["http.route"].startswith("api/v1/execution/<")
    spans: Any = exported.get_finished_spans()
    below = {one.name for one in spans if one.parent and one.parent.span_id == server.context.span_id}
    assert {TASK} < below <= {TASK, *(f"postgresql {word}" for word in STATEMENTS)}, below
    with every_tenant():
        entries = LedgerEntry.objects.filter(tells("attempt.received"))
        assert set(entries.values_list("trace_id", flat=True)) == {TRACE_ID}
    everything = " ".join(one.to_json() for one in spans)
    assert CANARY not in everything
    assert "token" not in everything
    assert CANARY not in json.dumps({name: value for name, value in sent.items() if name != "Host"})


def finished(**changes: Any) -> FinishedSpan:
    trace = read_trace(request_id="", traceparent=f"00-{TRACE_ID}-{CALLER}-{changes.pop('flags', '01')}")
    facts = {"trace": trace, "name": "GET health", "kind": "server", "began_ns": 1, "ended_ns": 2, "attributes": {}}
    return FinishedSpan(**facts | changes)


@pytest.mark.unit
def test_what_is_not_listed_does_not_leave_nor_what_the_caller_does_not_sample() -> None:
    exporter = InMemorySpanExporter()
    export = OtelExport(SimpleSpanProcessor(exporter))
    export(finished(attributes={"http.route": "health", "http.url": CANARY, "db.statement": CANARY}, error="KeyError"))
    export(finished(flags="00"))
    (one,) = exporter.get_finished_spans()
    assert dict(one.attributes) == {"http.route": "health", "error.type": "KeyError"}
    assert one.status.description is None
    assert not one.events
    assert CANARY not in one.to_json()


@pytest.mark.unit
def test_an_exception_is_a_class_name_and_a_failing_collector_stops_nothing() -> None:
    kept: list[FinishedSpan] = []
    bind_trace(read_trace(request_id="", traceparent=""))
    outer = current_trace()
    try:
        collect_spans(kept.append)
        with pytest.raises(KeyError), span("adapter http"):
            raise KeyError(CANARY)
        assert current_trace() == outer

        def fail() -> Any:
            raise OSError(CANARY)

        collect_spans(ProcessOwn(make=fail))
        with span("adapter http"):
            done = True
    finally:
        collect_spans(None)
        clear_trace()
    assert done
    assert [one.error for one in kept] == ["KeyError"]


@pytest.mark.unit
def test_a_collector_gets_it_over_http_and_a_process_that_was_forked_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    try:
        made: list[OtelExport] = []
        collector = ProcessOwn(make=lambda: made.append(otlp_export()) or made[-1])  # type: ignore[func-returns-value]
        collector(finished(attributes={"http.route": "health", "http.url": CANARY}))
        collector.flush()
        here = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: here + 1)
        collector(finished(name="GET metrics"))
        collector.flush()
        monkeypatch.undo()
    finally:
        for one in made:
            one._provider.shutdown()
        server.shutdown()
        server.server_close()
        thread.join(5)
    spans = [
        one
        for body in received
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    ]
    assert [one.name for one in spans] == ["GET health", "GET metrics"]
    assert {one.trace_id.hex() for one in spans} == {TRACE_ID}
    assert {one.parent_span_id.hex() for one in spans} == {CALLER}
    assert len(made) == 2
    assert CANARY.encode() not in b"".join(received)
