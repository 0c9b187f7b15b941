"""The closed door over a real socket and a real gunicorn: a body that nobody may send costs us nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from config.embedded.paths import PROJECT
from config.supervisor.children import COMMANDS
from tests.stack.homes import seasoned_copy, servers_of
from tests.stack.support import FACTS, bare_environment, free_port, get, wait_for

pytestmark = pytest.mark.stack
MIB = 1024 * 1024
SIZE = 50 * MIB


@dataclass
class Server:
    port: int
    folder: Path
    demo: dict[str, Any]

    @property
    def key(self) -> str:
        return str(self.demo["keys"]["caller"])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def head(self, *headers: str, key: str | None = None, slug: str = "no-such", method: str = "POST") -> bytes:
        lines = [
            f"{method} /api/v1/execution/{slug}/1/attempts HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {key or self.key}",
            "Content-Type: application/json",
            *headers,
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def workers(self) -> list[psutil.Process]:
        found = [
            process
            for process in psutil.process_iter(["cmdline"])
            if "config/server/gunicorn.py" in (process.info["cmdline"] or [])
            and str(self.port) in str(process.environ())
        ]
        return [process for process in found if process.ppid() in {other.pid for other in found}]

    def memory(self) -> int:
        return sum(process.memory_info().rss for process in self.workers())


@pytest.fixture(scope="module")
def server(seasoned_home: Path) -> Iterator[Server]:
    with server_running(seasoned_home) as running:
        yield running


@contextmanager
def server_running(seasoned_home: Path, **variables: str) -> Iterator[Server]:
    """One gunicorn, as `make run` starts it, for all tests of a file."""
    with seasoned_copy(seasoned_home) as home, servers_of(home) as servers:
        port, folder = free_port(), home.with_name("door")
        folder.mkdir()
        environment = bare_environment(
            DJANGO_SETTINGS_MODULE="config.settings.local",
            DATABASE_URL=servers.database_url,
            REDIS_URL=servers.redis_url,
            HOLDPOINT_HOME=str(home),
            HOLDPOINT_BIND=f"127.0.0.1:{port}",
            PORT=str(port),
            WEB_CONCURRENCY="1",
            # The copy's own witness does not run here. At its address may be another copy's, which keeps other heads.
            HOLDPOINT_WITNESSES="",
            TMPDIR=str(folder),
            **variables,
        )
        command = [sys.executable, "-m", "gunicorn", *COMMANDS["web"][1:]]
        with (folder / "web.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, stderr=log)
        try:
            wait_for(lambda: _answers(port) or process.poll() is not None, seconds=60, what="gunicorn answers")
            assert process.poll() is None
            yield Server(port=port, folder=folder, demo=json.loads((home / FACTS).read_text()))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _answers(port: int) -> bool:
    try:
        return get(f"http://127.0.0.1:{port}/health").status == 200
    except OSError:
        return False


@dataclass
class Reply:
    status: int
    head: str
    body: bytes
    seconds: float
    closed: bool


def receive(sock: socket.socket, *, began: float) -> Reply:
    """One response, and whether the server then closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(65536)
        assert chunk, data
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode()
    length = int(next(line for line in text.lower().splitlines() if line.startswith("content-length:")).split(":")[1])
    while len(body) < length:
        body += sock.recv(65536)
    seconds = time.monotonic() - began
    closed = "connection: close" in text.lower() and _ended(sock)
    return Reply(int(text.split()[1]), text, body[:length], seconds, closed)


def _ended(sock: socket.socket) -> bool:
    sock.settimeout(5)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def refused(reply: Reply) -> None:
    assert reply.status == 403
    assert "application/problem+json" in reply.head
    assert json.loads(reply.body)["type"].endswith("/problems/attempt-creation-disabled")
    assert reply.closed


def test_fifty_megabytes_announced_and_none_sent(server: Server) -> None:
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(server.head(f"Content-Length: {SIZE}"))
        reply = receive(sock, began=began)
    refused(reply)
    assert reply.seconds < 1


def test_a_stalled_upload_does_not_hold_anything_up(server: Server) -> None:
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(server.head(f"Content-Length: {SIZE}") + b"ten bytes!")
        reply = receive(sock, began=began)
        ended = time.monotonic() - began
    refused(reply)
    assert reply.seconds < 1
    assert ended < 3  # the answer is out at once; the connection does not linger


def test_sixteen_stalled_uploads_leave_the_threads_free(server: Server) -> None:
    stalled = [server.connect() for _ in range(16)]
    try:
        for sock in stalled:
            sock.sendall(server.head(f"Content-Length: {SIZE}") + b"ten bytes!")
        began = time.monotonic()
        assert get(f"http://127.0.0.1:{server.port}/health").status == 200
        assert time.monotonic() - began < 2
    finally:
        for sock in stalled:
            sock.close()


@pytest.mark.parametrize("chunked", [False, True])
def test_fifty_megabytes_of_garbage_are_not_taken_in(server: Server, chunked: bool) -> None:
    get(f"http://127.0.0.1:{server.port}/health")
    before = server.memory()
    assert before > 0
    garbage = os.urandom(MIB)
    piece = b"%x\r\n%b\r\n" % (len(garbage), garbage) if chunked else garbage
    header = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {SIZE}"
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(server.head(header))
        sent = 0
        try:
            while sent < SIZE:
                sock.sendall(piece)
                sent += len(garbage)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it closed on us: that is what it should do
        try:
            reply = receive(sock, began=began)
        except ConnectionResetError:
            # We kept pushing into a closed connection, and the reset overtook the answer. The next test reads it first.
            reply = None
    if reply is not None:
        refused(reply)
    assert server.memory() - before < 20 * MIB


@pytest.mark.parametrize("header", [f"Content-Length: {SIZE}", "Transfer-Encoding: chunked"])
def test_an_answer_is_there_while_the_garbage_is_still_being_sent(server: Server, header: str) -> None:
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(server.head(header) + b"5\r\n\xff\x00\xfe\x01\x02\r\nnot a chunk size")
        refused(receive(sock, began=began))


def test_nobody_is_invited_to_send_a_body(server: Server) -> None:
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(server.head(f"Content-Length: {SIZE}", "Expect: 100-continue"))
        reply = receive(sock, began=began)
    assert reply.head.startswith("HTTP/1.1 403")
    refused(reply)


def test_where_a_body_is_read_the_caller_is_invited_first(server: Server) -> None:
    """The other side of the same coin: a door that reads bodies says `100 Continue` when it starts reading."""
    facts = server.demo
    body = b'{"scope": "human_decline"}'
    head = server.head(f"Content-Length: {len(body)}", "Expect: 100-continue", key=facts["keys"]["workflows"])
    head = head.replace(b"/api/v1/execution/no-such/1/attempts", b"/api/v1/reason-codes")
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(head)
        assert sock.recv(len(b"HTTP/1.1 100 Continue\r\n\r\n")).startswith(b"HTTP/1.1 100 Continue")
        sock.sendall(body)
        reply = receive(sock, began=began)
    assert reply.status == 400
    assert {error["pointer"] for error in json.loads(reply.body)["errors"]} == {"/code", "/label"}


@pytest.mark.parametrize("header", ["Content-Length: 0", "X-Nothing: here"])
def test_without_a_body_the_connection_is_kept(server: Server, header: str) -> None:
    with closing(server.connect()) as sock:
        for _ in range(3):
            began = time.monotonic()
            sock.sendall(server.head(header))
            reply = receive(sock, began=began)
            assert reply.status == 403
            assert "connection: close" not in reply.head.lower()


def test_a_second_request_hidden_in_an_unread_body_is_never_answered(server: Server) -> None:
    hidden = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for header, body in (
        (f"Content-Length: {len(hidden)}", hidden),
        ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden)),
        (f"Content-Length: {SIZE}", hidden),
    ):
        with closing(server.connect()) as sock:
            began = time.monotonic()
            sock.sendall(server.head(header) + body + hidden)
            refused(receive(sock, began=began))


def test_a_413_does_not_wait_for_the_body_either(server: Server) -> None:
    facts = server.demo
    head = server.head(f"Content-Length: {SIZE}", key=facts["keys"]["workflows"])
    head = head.replace(b"/api/v1/execution/no-such/1/attempts", b"/api/v1/reason-codes")
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(head + b"ten bytes!")
        reply = receive(sock, began=began)
    assert (reply.status, reply.closed) == (413, True)
    assert reply.seconds < 1


def test_the_servers_log_is_json_and_repeats_no_address(server: Server) -> None:
    with closing(server.connect()) as sock:
        sock.sendall(server.head("Content-Length: 5", slug="zx81marker") + b"12345")
        receive(sock, began=time.monotonic())
    with closing(server.connect()) as sock:
        sock.sendall(b"GET /zx81marker zx81marker HTTP/9.9\r\nHost: zx81marker\r\n\r\n")
        sock.settimeout(5)
        assert sock.recv(1000).startswith(b"HTTP/1.1 400")
    lines = (server.folder / "web.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines if "attempt_refused_unread" in line]
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert "zx81marker" not in "\n".join(lines)


MARK = "zx81marker"


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (f"GET /{MARK} {MARK}\r\nHost: a\r\n\r\n", 400, "request-malformed"),
        (f"{MARK}\r\n\r\n", 400, "request-malformed"),
        (f"{MARK}\x01 / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request-malformed"),
        (f"GET / HTTP/1.1\r\nHost: a\r\n{MARK} name: b\r\n\r\n", 400, "request-malformed"),
        (f"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n {MARK}\r\n\r\n", 400, "request-malformed"),
        (f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {MARK}\r\n\r\n", 400, "request-malformed"),
        (f"GET /{MARK}{'a' * 5000} HTTP/1.1\r\nHost: a\r\n\r\n", 414, "address-too-long"),
        (f"GET / HTTP/1.1\r\nHost: a\r\nX: {MARK}{'a' * 9000}\r\n\r\n", 431, "headers-too-large"),
        ("GET / HTTP/1.1\r\n" + f"X: {MARK}\r\n" * 70 + "\r\n", 431, "headers-too-large"),
        (f"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {MARK}\r\n\r\n", 501, "transfer-coding-unknown"),
    ],
)
def test_what_the_server_itself_refuses_is_a_problem_without_a_word_of_the_request(
    server: Server, sent: str, status: int, code: str
) -> None:
    with closing(server.connect()) as sock:
        began = time.monotonic()
        sock.sendall(sent.encode("latin1"))
        reply = receive(sock, began=began)
    assert (reply.status, reply.closed) == (status, True), reply
    problem = json.loads(reply.body)
    assert (problem["status"], problem["type"]) == (status, f"/problems/{code}")
    for name in ("content-type: application/problem+json", "cache-control: no-store", "x-request-id: "):
        assert name in reply.head.lower()
    assert MARK not in (reply.head + reply.body.decode()).lower()
    assert MARK not in (server.folder / "web.log").read_text().lower()
    assert get(f"http://127.0.0.1:{server.port}/problems/{code}").status == 200
