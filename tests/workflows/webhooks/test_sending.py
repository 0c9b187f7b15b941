"""One try against receivers that behave badly, when it is tried again, and what endpoints can ask for."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from reasoncodes.base.ids import uuid7
from tests.attempts.execution.target import CountingTarget
from workflows.events.rules import event_types
from workflows.webhooks.adapters import READ_LIMIT_BYTES, WebhookRequest, WebhookResult, webhook_send
from workflows.webhooks.rules.delivery import DELAYS, FAILING, hold, matches, next_try, pattern_problems
from workflows.webhooks.rules.events import BY_ACTION, EMIT, TYPES, body_of_entry, webhook_schema

pytestmark = pytest.mark.unit
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def target() -> Iterator[CountingTarget]:
    found = CountingTarget()
    yield found
    found.stop()


def try_once(url: str, host: str, seconds: float = 5.0) -> WebhookResult:
    return webhook_send(
        WebhookRequest(url, b'{"a":1}', {"content-type": "application/json"}, frozenset({host}), seconds)
    )


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, "delivered") for status in (200, 204)),
        *((status, "refused") for status in (400, 404, 429, 500, 503)),
        (301, "redirected"),
        (410, "gone"),
    ],
)
def test_the_status_line_is_the_receivers_word(target: CountingTarget, status: int, outcome: str) -> None:
    target.statuses, target.headers = [status], {"Retry-After": "7"}
    target.body = b"" if status == 204 else b"some words of the receiver"
    sent = try_once(target.url, target.host)
    assert (sent.outcome, sent.status, sent.truncated, sent.retry_after) == (outcome, status, False, 7.0)
    assert (sent.response_bytes, sent.response_sha256) == (len(target.body), sha256(target.body).hexdigest())
    assert target.requests[0]["raw"] == b'{"a":1}'


def test_of_a_huge_answer_only_the_beginning_is_read_and_nothing_is_unpacked(target: CountingTarget) -> None:
    target.body = b"x" * 5_000_000
    sent = try_once(target.url, target.host)
    assert (sent.outcome, sent.truncated, sent.response_bytes) == ("delivered", True, READ_LIMIT_BYTES)
    assert sent.response_sha256 == sha256(b"x" * READ_LIMIT_BYTES).hexdigest()
    target.body, target.headers = gzip.compress(b"0" * 20_000_000), {"Content-Encoding": "gzip"}
    sent = try_once(target.url, target.host)
    assert (sent.outcome, sent.truncated, sent.response_bytes) == ("delivered", False, len(target.body))


def raw(answer: Callable[[socket.socket], None]) -> tuple[str, str]:
    """The URL and host of a receiver that does what `answer` says with its one connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        listener.close()
        with connection:
            connection.recv(65536)
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    host = f"127.0.0.1:{listener.getsockname()[1]}"
    return f"http://{host}/", host


def drip(connection: socket.socket) -> None:
    """A byte now and then: never silent long enough for a plain timeout."""
    try:
        while True:
            connection.sendall(b"H")
            time.sleep(0.02)
    except OSError:
        return


def drip_the_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    drip(connection)


@pytest.mark.parametrize(
    ("answer", "outcome", "truncated"),
    [
        (lambda connection: time.sleep(2), "timeout", False),
        (drip, "timeout", False),
        (drip_the_body, "delivered", True),
        (lambda connection: None, "answer_lost", False),
        (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n"), "answer_lost", False),
        (lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 60_000), "answer_lost", False),
    ],
)
def test_slow_broken_and_foreign_answers_end_in_time(
    answer: Callable[[socket.socket], None], outcome: str, truncated: bool
) -> None:
    began = time.monotonic()
    sent = try_once(*raw(answer), seconds=0.4)
    assert (sent.outcome, sent.truncated) == (outcome, truncated)
    assert time.monotonic() - began < 1.5


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    assert try_once(f"http://{host}/", host).outcome == "no_connection"


def test_tries_go_on_for_about_three_days_and_do_not_come_back_together() -> None:
    assert timedelta(hours=72) <= timedelta(seconds=sum(DELAYS)) <= timedelta(hours=80)
    assert timedelta(seconds=sum(DELAYS)) >= FAILING
    for failures, delay in enumerate(DELAYS, start=1):
        waits = [(next_try(delivery_id=uuid7(), failures=failures, at=NOW) or NOW) - NOW for _ in range(200)]
        seconds = [one.total_seconds() for one in waits]
        assert delay <= min(seconds) < delay * 1.03 < delay * 1.07 < max(seconds) <= delay * 1.1
    same = {next_try(delivery_id=UUID(int=1), failures=3, at=NOW) for _ in range(3)}
    assert len(same) == 1
    assert next_try(delivery_id=uuid7(), failures=len(DELAYS) + 1, at=NOW) is None


def test_an_endpoint_that_fails_is_left_alone_for_longer_and_longer_within_bounds() -> None:
    waits = [(hold(failures=n, at=NOW, retry_after=None) - NOW).total_seconds() for n in (1, 2, 5, 9, 10_000)]
    assert waits == [2, 4, 32, 300, 300]
    assert (hold(failures=1, at=NOW, retry_after=90.0) - NOW).total_seconds() == 90
    assert (hold(failures=1, at=NOW, retry_after=1e9) - NOW).total_seconds() == 3600


def test_patterns_match_names_and_their_beginnings() -> None:
    assert matches(["*"], "anything.at.all")
    assert matches(["attempt.*"], "attempt.held")
    assert matches(["review.opened", "attempt.held"], "attempt.held")
    for pattern in ("attempt", "attempt.h*", "attempt.held.*", "Attempt.held", "tempt.*", ""):
        assert not matches([pattern], "attempt.held")
    assert pattern_problems(["*", "attempt.*", "workflow.halted", "case.reviewed"], emitted=["case.reviewed"]) == []
    (wrong,) = pattern_problems(["attempt.*", "atempt.held"], emitted=[])
    assert (wrong.pointer, wrong.suggestion) == ("/events/1", "attempt.held")
    for pattern in ("", "**", "*.held", "attempt.", "case.reviewed", "nothing.*", "a b", EMIT, "webhook.test"):
        assert pattern_problems([pattern], emitted=[]), pattern
    assert pattern_problems([], emitted=[])
    assert pattern_problems(["*"] * 51, emitted=[])


def test_every_type_has_a_schema_that_its_thin_body_fits() -> None:
    known = {event.name for event in event_types() if event.direction == "out"}
    for one in TYPES.values():
        Draft202012Validator.check_schema(webhook_schema(one))
        assert one.action or one.name in known or one.name == "webhook.test"
        assert set(one.data["properties"]) <= {"organization_id", "case_id", "instance_id", "status", "reason_code"} | {
            "definition_id",
            "mode",
            "action",
            "step_id",
            "halt_step_id",
            "payload",
            "attempt_id",
            "endpoint_id",
        } | {f"{subject}_id" for subject in ("review", "quarantine_case", "contract", "shutdown", "webhook_endpoint")}
    for one in BY_ACTION.values():
        body = body_of_entry(
            one,
            organization_id=str(uuid7()),
            subject_id=str(uuid7()),
            reason_code="policy_denied",
            attempt_id=str(uuid7()),
            at=NOW,
        )
        Draft202012Validator(webhook_schema(one)).validate(json.loads(body))
