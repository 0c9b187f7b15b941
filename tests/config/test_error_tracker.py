"""What reaches an error tracker: class, place, trace. A real event of the real SDK, caught where it would leave."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
import structlog
from sentry_sdk.transport import Transport

from config import logs
from config.api.problems import as_domain_error
from config.error_tracker import error_report, tracker_options
from reasoncodes.base.trace import bind_trace, clear_trace, read_trace

pytestmark = pytest.mark.unit
CANARY = "zx81canary"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


class Caught(Transport):
    """Keeps what would be sent, as it would be sent."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.sent: list[bytes] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.sent.append(envelope.serialize())

    def flush(self, *_: Any, **__: Any) -> None:
        return

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for body in self.sent for line in body.splitlines() if b'"exception"' in line]


@pytest.fixture
def caught() -> Iterator[Caught]:
    threads = threading.active_count()
    transport = Caught()
    sentry_sdk.init(dsn="https://public@tracker.test/1", transport=transport, **tracker_options())
    assert threading.active_count() == threads, "web and worker are forked after this"
    logs.report_exceptions_to(error_report)
    bind_trace(read_trace(request_id="order-17", traceparent=f"00-{TRACE_ID}-00f067aa0ba902b7-01"))
    yield transport
    clear_trace()
    logs._trackers.clear()
    sentry_sdk.get_client().close()
    sentry_sdk.init()
    sentry_sdk.get_global_scope().set_client(None)


def fail(secret: str) -> None:
    patient = {"name": secret}
    try:
        raise KeyError(secret)
    except KeyError as inner:
        raise RuntimeError(f"no {patient} for {secret}", patient) from inner


def test_an_error_is_reported_by_class_and_place_and_nothing_that_was_submitted(caught: Caught) -> None:
    sentry_sdk.get_isolation_scope().set_user({"id": CANARY})
    sentry_sdk.get_isolation_scope().set_extra("body", CANARY)
    sentry_sdk.get_isolation_scope().set_tag("patient", CANARY)
    sentry_sdk.add_breadcrumb(message=CANARY)
    try:
        fail(CANARY)
    except RuntimeError as error:
        as_domain_error(error)
        structlog.get_logger("holdpoint.api").error("unhandled_error", body=CANARY, exc_info=error)
        logging.getLogger("some.library").exception("failed for %s", CANARY)
        logging.getLogger("some.library").exception(f"failed for {CANARY}")
        sentry_sdk.capture_exception(error)
    sentry_sdk.capture_message(CANARY)
    with sentry_sdk.start_transaction(name=CANARY, sampled=True):
        pass
    assert CANARY.encode() not in b"".join(caught.sent)
    events = caught.events()
    assert len(events) >= 4
    first = events[0]
    assert [one["type"] for one in first["exception"]["values"]] == ["KeyError", "RuntimeError"]
    frames = first["exception"]["values"][-1]["stacktrace"]["frames"]
    assert frames[-1]["function"] == "fail"
    assert all(set(frame) <= {"filename", "module", "function", "lineno", "in_app"} for frame in frames)
    assert first["tags"]["request_id"] == "order-17"
    assert first["tags"]["trace_id"] == TRACE_ID
    assert {event["tags"].get("line") for event in events} >= {"unhandled_error", None}


def test_a_warning_is_not_reported_and_a_tracker_that_fails_does_not_cost_the_line(
    caught: Caught, caplog: pytest.LogCaptureFixture
) -> None:
    log = structlog.get_logger("holdpoint.api")
    log.warning("not_ready", exc_info=ValueError(CANARY))
    assert caught.sent == []

    def broken(*_: Any) -> None:
        raise OSError(CANARY)

    logs.report_exceptions_to(broken)
    log.error("unhandled_error", exc_info=ValueError(CANARY))
    line: Any = caplog.records[-1].msg
    assert (line["event"], line["error"], line["not_reported"]) == ("unhandled_error", "ValueError", "OSError")
    assert CANARY not in str(line)
