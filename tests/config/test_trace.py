"""Request id and trace: in and out over HTTP, in every log line, into the ledger, and through the broker to a task."""

import json
import re
from typing import Any

import pytest
import structlog
from celery import shared_task
from celery.contrib.testing.worker import start_worker
from django.test import Client
from django.utils import timezone

from config.celery import app as celery_app
from config.logs import SHARED
from governance.ledger.models import LedgerEntry
from governance.outside.valkey import valkey
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import TraceContext, bind_trace, clear_trace, current_trace, read_trace
from tests.cast import Cast

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-00"
URL = "/api/v1/reason-codes"
RESULT = "holdpoint:tests:trace"


def call(**headers: str) -> Any:
    return Client().get("/problems/", headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_the_callers_ids_come_back() -> None:
    answer = call(X_Request_ID="order-17.b_2", traceparent=TRACEPARENT)
    assert answer["X-Request-ID"] == "order-17.b_2"
    version, trace_id, span_id, flags = answer["traceparent"].split("-")
    assert (version, trace_id, flags) == ("00", TRACE_ID, "00")
    assert span_id != "00f067aa0ba902b7"


@pytest.mark.parametrize("given", ["", "-dash-first", "a b", "x" * 65, "é", "a\tb", 'quote"', "<script>", "../etc"])
def test_a_malformed_request_id_is_replaced(given: str) -> None:
    made = call(X_Request_ID=given)["X-Request-ID"]
    assert made != given
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", made)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "nonsense",
        TRACEPARENT.upper(),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"ff-{TRACE_ID}-00f067aa0ba902b7-01",
        TRACEPARENT + "-more",
        f"00-{TRACE_ID}é-00f067aa0ba902b7-01",
    ],
)
def test_a_malformed_traceparent_is_replaced(given: str) -> None:
    made = call(traceparent=given)["traceparent"]
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", made)
    assert TRACE_ID not in made


def test_two_requests_without_ids_get_two_and_nothing_is_left_over() -> None:
    assert call()["X-Request-ID"] != call()["X-Request-ID"]
    assert current_trace() is None
    assert structlog.contextvars.get_contextvars() == {}


def test_the_log_line_of_a_request_carries_both(caplog: pytest.LogCaptureFixture) -> None:
    call(X_Request_ID="order-17", traceparent=TRACEPARENT)
    lines: list[Any] = [record.msg for record in caplog.records if record.name == "holdpoint.http"]
    assert [(line["request_id"], line["trace_id"], line["route"]) for line in lines] == [
        ("order-17", TRACE_ID, "problems/")
    ]


def test_the_ledger_carries_both(cast: Cast) -> None:
    answer = cast.api("orchestrator:write").post(
        URL,
        {"scope": "human_decline", "code": "tired", "label": "Tired"},
        headers={"X-Request-ID": "order-17", "traceparent": TRACEPARENT},
    )
    assert answer.status_code == 201
    with every_tenant():
        entry = LedgerEntry.objects.get(action="reason_code.created")
    assert (entry.request_id, entry.trace_id) == ("order-17", TRACE_ID)


@shared_task(name="tests.report_trace")
def report_trace() -> None:
    trace = current_trace()
    assert trace is not None
    line: Any = {"event": "in_the_task"}
    for processor in SHARED[:1]:
        line = processor(None, "info", line)
    found = {"request_id": trace.request_id, "trace_id": trace.trace_id, "span_id": trace.span_id, "line": line}
    valkey().lpush(RESULT, json.dumps(found))


@pytest.fixture(scope="module")
def worker() -> Any:
    """A worker in this process on a queue of its own, fed by the real broker."""
    queue = "holdpoint-tests-trace"
    with start_worker(celery_app, queues=[queue], perform_ping_check=False, pool="solo", loglevel="WARNING"):
        yield queue
    # Workers of later tests, which name no queue, would listen to the last one that was named.
    celery_app.amqp.queues.select([celery_app.conf.task_default_queue])


def run_task(queue: str) -> dict[str, Any]:
    valkey().delete(RESULT)
    report_trace.apply_async(queue=queue)
    popped: Any = valkey().blpop([RESULT], timeout=1) or valkey().blpop([RESULT], timeout=1)
    assert popped, "the task did not run"
    return dict(json.loads(popped[1]))


def test_a_task_runs_in_the_trace_of_the_request_that_caused_it(worker: str) -> None:
    bind_trace(TraceContext("order-17", TRACE_ID, "00f067aa0ba902b7"))
    try:
        found = run_task(worker)
    finally:
        clear_trace()
    assert (found["request_id"], found["trace_id"]) == ("order-17", TRACE_ID)
    assert found["span_id"] != "00f067aa0ba902b7"
    assert found["line"]["request_id"] == "order-17"
    assert found["line"]["trace_id"] == TRACE_ID
    assert found["line"]["task"] == "tests.report_trace"

    other = run_task(worker)  # caused by nobody: it has a trace of its own, not the one before
    assert other["trace_id"] != TRACE_ID
    assert other["request_id"] != "order-17"


def test_reading_is_pure_replacement() -> None:
    trace = read_trace(request_id="a", traceparent=f" {TRACEPARENT} ")
    assert trace.traceparent.startswith(f"00-{TRACE_ID}-")
    assert timezone.now().tzinfo is not None
