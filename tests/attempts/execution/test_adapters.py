"""Each adapter against a real receiver: what counts as success, as failure, and as unknown. And what it may claim."""

import json
import smtplib
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest
from django.core import mail

from attempts.execution.adapters.base import ADAPTERS, AdapterCall, OutcomeKind, effect_in_force
from attempts.execution.adapters.email import EmailAdapter
from attempts.execution.adapters.event import STREAM, EventAdapter, stream_client
from attempts.execution.adapters.external import ExternalAdapter
from attempts.execution.adapters.http import READ_LIMIT_BYTES, HttpAdapter
from attempts.execution.adapters.slack import SlackAdapter
from attempts.execution.rules import outside_boundary
from governance.contracts.states import AdapterName
from tests.attempts.execution.target import CountingTarget

ROUTE = "clinic/close-case"


def call(**changes: Any) -> AdapterCall:
    facts: dict[str, Any] = {
        "attempt_id": UUID(int=1),
        "organization_id": UUID(int=2),
        "organization": "clinic",
        "workflow_slug": "close-case",
        "contract_version": 1,
        "operation": "case.close",
        "target_ref": "case-0001",
        "payload_ref": "payload-0001",
        "payload_sha256": "ab" * 32,
        "fields": ("status",),
        "effect_key": "hp-1",
        "metadata": {},
        "seconds": 5.0,
    }
    return AdapterCall(**facts | changes)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- what they may claim -------------------------------------------------------------------------------------------


def test_there_is_one_adapter_for_each_name_that_a_contract_may_use() -> None:
    assert set(ADAPTERS) == set(AdapterName)


@pytest.mark.parametrize(
    ("adapter", "effect", "allowed"),
    [
        ("email", "idempotent", False),
        ("slack", "none", False),
        ("email", "once", True),
        ("http", "idempotent", True),
        ("http", "none", False),
        ("http", "once", True),
        ("event", "idempotent", True),
        ("external", "none", True),
    ],
)
def test_a_contract_may_claim_no_more_than_its_adapter_can_prove(adapter: str, effect: str, allowed: bool) -> None:
    assert (effect_in_force(adapter=adapter, effect=effect) == effect) is allowed


def test_what_nobody_knows_is_once() -> None:
    assert effect_in_force(adapter="no-such", effect="none") == "once"
    assert effect_in_force(adapter="http", effect="something new") == "once"


def test_the_external_adapter_sends_nothing() -> None:
    assert ExternalAdapter().call(call()).kind is OutcomeKind.FAILURE


# --- http ----------------------------------------------------------------------------------------------------------


def test_http_without_a_target_is_a_failure_and_nothing_is_sent(settings: Any) -> None:
    settings.HOLDPOINT_HTTP_TARGETS = {}
    settings.HOLDPOINT_DEMO_TARGET = ""
    outcome = HttpAdapter().call(call())
    assert (outcome.kind, outcome.response_metadata) == (OutcomeKind.FAILURE, {"failure": "target_not_configured"})


def test_http_calls_the_demo_target_where_a_demo_is_allowed(settings: Any, target: CountingTarget) -> None:
    settings.HOLDPOINT_HTTP_TARGETS, settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = {}, []
    settings.HOLDPOINT_DEMO_TARGET = target.url
    assert HttpAdapter().call(call()).kind is OutcomeKind.SUCCESS
    settings.DEMO_ALLOWED = False
    assert HttpAdapter().call(call()).kind is OutcomeKind.FAILURE
    assert len(target.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f000001", "2130706433"])
def test_http_refuses_an_inward_target_that_nobody_listed(settings: Any, target: CountingTarget, host: str) -> None:
    port = target.server.server_address[1]
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = []
    for scheme in ("http", "https"):
        settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: f"{scheme}://{host}:{port}/hook"}
        outcome = HttpAdapter().call(call())
        assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, False)
        assert outcome.response_metadata == {"failure": "address_refused"}
    assert not target.requests


def test_http_follows_no_redirect_and_no_proxy_of_the_environment(
    target: CountingTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    assert HttpAdapter().call(call()).kind is OutcomeKind.SUCCESS
    target.statuses, target.headers = [302], {"Location": target.url}
    outcome = HttpAdapter().call(call())
    assert (outcome.kind, outcome.response_metadata["status"]) == (OutcomeKind.FAILURE, 302)
    assert len(target.requests) == 2


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (404, False), (409, False), (429, True), (503, True)])
def test_http_says_which_refusals_may_be_tried_again(target: CountingTarget, status: int, retryable: bool) -> None:
    target.statuses = [status]
    outcome = HttpAdapter().call(call())
    assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, retryable)


def test_http_keeps_size_and_hash_of_the_answer_and_never_the_answer(target: CountingTarget) -> None:
    target.body = b'{"patient":"Jane Canary"}'
    outcome = HttpAdapter().call(call())
    assert set(outcome.response_metadata) == {"status", "response_bytes", "response_sha256"}
    assert not outside_boundary(outcome.response_metadata)
    target.body = b"x" * (READ_LIMIT_BYTES + 1)
    assert HttpAdapter().call(call()).response_metadata == {"status": 200, "truncated": True}


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that speaks bytes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            talk(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            return

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(5)


def aimed(settings: Any, port: int) -> None:
    settings.HOLDPOINT_HTTP_TARGETS = {ROUTE: f"http://127.0.0.1:{port}/hook"}
    settings.HOLDPOINT_HTTP_ALLOW_PRIVATE = [f"127.0.0.1:{port}"]


def test_http_one_deadline_holds_even_when_the_receiver_drips(settings: Any) -> None:
    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 200:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with raw_server(drip) as port:
        aimed(settings, port)
        began = time.monotonic()
        outcome = HttpAdapter().call(call(seconds=0.5))
    assert (outcome.kind, outcome.response_metadata) == (OutcomeKind.UNKNOWN, {"failure": "timeout"})
    assert time.monotonic() - began < 3


def test_http_a_connection_that_breaks_after_sending_is_unknown(settings: Any) -> None:
    with raw_server(lambda connection: connection.recv(65536) and None) as port:
        aimed(settings, port)
        assert HttpAdapter().call(call()).kind is OutcomeKind.UNKNOWN


def test_http_no_connection_is_a_retryable_failure(settings: Any) -> None:
    aimed(settings, closed_port())
    outcome = HttpAdapter().call(call())
    assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, True)


# --- event ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_stream_client() -> Iterator[None]:
    stream_client.cache_clear()
    yield
    stream_client.cache_clear()


def test_event_writes_the_call_with_its_key_to_the_stream_of_the_operation(fresh_stream_client: None) -> None:
    name = STREAM + "test.operation"
    stream_client().delete(name)
    outcome = EventAdapter().call(call(operation="test.operation"))
    rows: Any = stream_client().xrange(name)
    ((entry, fields),) = rows
    assert (outcome.kind, outcome.response_metadata) == (OutcomeKind.SUCCESS, {"stream_entry": entry})
    assert fields["event_id"] == "hp-1"
    assert json.loads(fields["data"])["target_ref"] == "case-0001"
    assert not outside_boundary(outcome.response_metadata)


def test_event_without_a_server_is_a_retryable_failure(settings: Any, fresh_stream_client: None) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    outcome = EventAdapter().call(call())
    assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, True)


def test_event_that_the_server_refuses_is_a_failure(fresh_stream_client: None) -> None:
    stream_client().set(STREAM + "test.taken", "no stream")
    outcome = EventAdapter().call(call(operation="test.taken"))
    assert (outcome.kind, outcome.retryable) == (OutcomeKind.FAILURE, False)


def test_event_whose_connection_breaks_after_sending_is_unknown(settings: Any, fresh_stream_client: None) -> None:
    def talk(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            if b"XADD" in data:
                return
            answers = data.count(b"CLIENT") + data.count(b"HELLO") + data.count(b"PING")
            connection.sendall(b"+PONG\r\n" if b"PING" in data else b"+OK\r\n" * max(1, answers))

    with raw_server(talk) as port:
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0?protocol=2"
        assert EventAdapter().call(call()).kind is OutcomeKind.UNKNOWN


# --- email ---------------------------------------------------------------------------------------------------------


def test_email_names_references_and_goes_where_settings_say(settings: Any) -> None:
    assert EmailAdapter().call(call()).response_metadata == {"failure": "target_not_configured"}
    settings.HOLDPOINT_EMAIL_TARGETS = {ROUTE: "desk@clinic.example"}
    assert EmailAdapter().call(call()).kind is OutcomeKind.SUCCESS
    (message,) = mail.outbox
    assert message.to == ["desk@clinic.example"]
    assert "payload-0001" in message.body
    assert message.extra_headers["X-Holdpoint-Effect-Key"] == "hp-1"


def smtp(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "governance.outside.mail.TimedEmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 2
    settings.HOLDPOINT_EMAIL_TARGETS = {ROUTE: "desk@clinic.example"}


def mail_server(answers: dict[bytes, bytes]) -> Callable[[socket.socket], None]:
    """Answers 250 to everything but what it is told; an empty answer hangs up."""

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"220 ready\r\n")
        while data := connection.recv(65536):
            command = data[:4].upper() if not data.endswith(b"\r\n.\r\n") else b"DONE"
            answer = answers.get(command, b"354 go on\r\n" if command == b"DATA" else b"250 ok\r\n")
            if not answer:
                return
            connection.sendall(answer)

    return talk


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ({}, OutcomeKind.SUCCESS),
        ({b"RCPT": b"550 no such user\r\n"}, OutcomeKind.FAILURE),
        ({b"DONE": b"554 rejected\r\n"}, OutcomeKind.FAILURE),
        ({b"DONE": b""}, OutcomeKind.UNKNOWN),
    ],
)
def test_email_tells_a_refusal_from_a_lost_answer(
    settings: Any, answers: dict[bytes, bytes], kind: OutcomeKind
) -> None:
    with raw_server(mail_server(answers)) as port:
        smtp(settings, port)
        outcome = EmailAdapter().call(call())
    assert (outcome.kind, outcome.retryable) == (kind, False)


def test_email_without_a_server_was_not_sent(settings: Any) -> None:
    smtp(settings, closed_port())
    assert EmailAdapter().call(call()).kind is OutcomeKind.FAILURE
    assert issubclass(smtplib.SMTPServerDisconnected, OSError)


# --- slack ---------------------------------------------------------------------------------------------------------


@contextmanager
def slack_server(answer: bytes | None, *, status: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    heard: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            if answer is None:
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            return

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api/", heard
        server.shutdown()
        thread.join(5)


def slack(settings: Any, url: str) -> None:
    settings.HOLDPOINT_SLACK_BASE_URL, settings.HOLDPOINT_SLACK_TOKEN = url, "xoxb-test"
    settings.HOLDPOINT_SLACK_CHANNELS = {ROUTE: "C0001"}


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (b'{"ok":true,"ts":"1.2"}', 200, OutcomeKind.SUCCESS),
        (b'{"ok":false,"error":"channel_not_found"}', 200, OutcomeKind.FAILURE),
        (b'{"ok":false,"error":"ratelimited"}', 429, OutcomeKind.FAILURE),
        (None, 200, OutcomeKind.UNKNOWN),
    ],
)
def test_slack_sends_once_and_tells_a_refusal_from_a_lost_answer(
    settings: Any, answer: bytes | None, status: int, kind: OutcomeKind
) -> None:
    with slack_server(answer, status=status) as (url, heard):
        slack(settings, url)
        outcome = SlackAdapter().call(call())
    assert (outcome.kind, outcome.retryable, len(heard)) == (kind, False, 1)
    assert b"case-0001" in heard[0]


def test_slack_without_a_server_or_a_channel_was_not_sent(settings: Any) -> None:
    assert SlackAdapter().call(call()).response_metadata == {"failure": "target_not_configured"}
    slack(settings, f"http://127.0.0.1:{closed_port()}/api/")
    assert SlackAdapter().call(call()).response_metadata == {"failure": "no_connection"}
