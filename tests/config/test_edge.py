"""Clients without a credential cannot keep the web server from answering others: silent, half-sent, stalled, slow, too
many, and guessing passwords."""

import http.client
import json
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pytest

from config.server.limits import EdgeLimits, pool_for
from tests.attempts.test_closed_door_sockets import receive, server_running
from tests.config.edge_clients import Asked, Edge, ask, guessers, sockets

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
# Generous: today's machines answer in milliseconds. Before, there was no answer at all.
SECONDS = 5
SCRIPT = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


@pytest.fixture(scope="module")
def edge(seasoned_home: Any) -> Any:
    limits = {
        "WEB_HEAD_SECONDS": "4",
        "WEB_BODY_SECONDS": "4",
        "WEB_CONNECTIONS_PER_ADDRESS": "20",
        "WEB_CONSOLE_THREADS": "2",
        "WEB_THREADS": "4",
    }
    with server_running(seasoned_home, **limits) as server:
        yield Edge(server.port, server.demo, seconds=SECONDS)


@pytest.fixture(scope="module")
def bare_edge(seasoned_home: Any) -> Any:
    """Without a proxy: every connection counts for its address, loopback too."""
    limits = {"WEB_HEAD_SECONDS": "4", "WEB_BODY_SECONDS": "4", "WEB_CONNECTIONS_PER_ADDRESS": "50", "WEB_PROXIES": ""}
    with server_running(seasoned_home, **limits) as server:
        yield Edge(server.port, server.demo, seconds=SECONDS)


def answered(asked: Asked, what: str) -> None:
    sys.stdout.write(f"\nedge, {what}: {asked}\n")  # shown with -s, and when it fails
    assert not asked.faults, (what, str(asked), asked.faults)
    assert max(asked.of(1.0).values()) < SECONDS


ATTACKS: dict[str, Callable[[Edge], AbstractContextManager[Any]]] = {
    "500 silent sockets": lambda edge: sockets(edge, 500, lambda: b""),
    "500 half-sent heads": lambda edge: sockets(
        edge, 500, lambda: b"POST /api/v1/execution/x/1/attempts HTTP/1.1\r\nHo"
    ),
    "200 stalled bodies": lambda edge: sockets(edge, 200, lambda: edge.head("Content-Length: 500") + b"ten bytes!"),
    "24 threads of wrong passwords": lambda edge: guessers(edge, 24),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_health_and_intake_are_answered_beside(edge: Edge, what: str) -> None:
    with ATTACKS[what](edge) as attack:
        asked = ask(edge, times=20, pause=0.2)
        assert attack
    answered(asked, what)


@pytest.mark.parametrize("what", list(ATTACKS)[:3])
def test_without_a_proxy_they_are_answered_too_even_from_the_address_of_the_attack(bare_edge: Edge, what: str) -> None:
    with ATTACKS[what](bare_edge) as attack:
        asked = ask(bare_edge, times=10, pause=0.1)
        assert attack
    answered(asked, f"{what}, no proxy")


def test_a_body_that_comes_in_pieces_is_read_when_it_is_whole_and_makes_one_attempt(edge: Edge) -> None:
    body = edge.example
    with closing(edge.connect()) as sock:
        began = time.monotonic()
        sock.sendall(edge.head(f"Content-Length: {len(body)}"))
        for start in range(0, len(body), 100):
            time.sleep(0.05)
            sock.sendall(body[start : start + 100])
        reply = receive(sock, began=began)
    assert reply.status == 201
    assert "idempotent-replayed: true" not in reply.head.lower()


def test_a_body_that_never_ends_is_told_so_within_its_time(edge: Edge) -> None:
    with closing(edge.connect()) as sock:
        began = time.monotonic()
        sock.sendall(edge.head("Content-Length: 500"))
        for _ in range(3):  # one byte now and then does not move the deadline
            sock.sendall(b" ")
            time.sleep(1)
        sock.settimeout(10)
        reply = receive(sock, began=began)
    assert (reply.status, reply.closed) == (408, True)
    assert json.loads(reply.body)["type"] == "/problems/request-too-slow"
    assert 3 < reply.seconds < 9


def test_a_head_that_never_ends_is_told_so_and_a_silent_connection_is_closed(edge: Edge) -> None:
    with closing(edge.connect()) as half, closing(edge.connect()) as silent:
        began = time.monotonic()
        half.sendall(b"GET /health HTTP/1.1\r\n")
        half.settimeout(10)
        silent.settimeout(10)
        assert receive(half, began=began).status == 408
        assert silent.recv(1) == b""
        assert time.monotonic() - began < 9


def test_one_address_has_few_connections_and_its_oldest_silent_one_makes_room(edge: Edge) -> None:
    opened = [edge.connect("127.0.0.9") for _ in range(30)]
    try:
        time.sleep(0.5)
        closed = [sock for sock in opened if ended(sock)]
        assert closed == opened[:10]
        last = opened[-1]
        last.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert receive(last, began=time.monotonic()).status == 200
    finally:
        for sock in opened:
            sock.close()


def ended(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    finally:
        sock.settimeout(SECONDS)


@contextmanager
def waiting(edge: Edge, count: int) -> Any:
    """Long polls on held attempts, all from one address."""
    route = edge.demo["contracts"]["hold"]
    opened = []
    for _ in range(count):
        maker = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=SECONDS)
        path = f"/api/v1/execution/{route['slug']}/{route['version']}/attempts"
        maker.request("POST", path, json.dumps(edge.demo["attempt_example"]), edge.intake_headers)
        held = json.loads(maker.getresponse().read())
        maker.close()
        sock = edge.connect("127.0.0.7")
        opened.append(sock)
        key = edge.demo["keys"]["caller"]
        lines = [f"GET /api/v1/attempts/{held['id']} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}"]
        sock.sendall("\r\n".join([*lines, "Prefer: wait=20", "", ""]).encode())
    try:
        yield opened
    finally:
        for sock in opened:
            sock.close()


def test_long_polls_take_at_most_half_of_the_threads(edge: Edge) -> None:
    with waiting(edge, 8) as polls:
        answered(ask(edge, times=5), "8 long polls, 4 threads")
        time.sleep(0.5)
        assert sum(_still_waits(sock) for sock in polls) == 2


def _still_waits(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def test_a_client_that_does_not_take_its_answer_holds_no_thread(edge: Edge) -> None:
    """More of them than people have threads, with an answer that fits into no socket's buffer."""
    opened = []
    try:
        for _ in range(12):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            sock.settimeout(SECONDS)
            sock.connect(("127.0.0.1", edge.port))
            opened.append(sock)
            sock.sendall(f"GET {SCRIPT} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert edge.request("GET", "/admin/login/") == 200
        sock = opened[0]
        reply = receive(sock, began=time.monotonic())
        assert reply.status == 200
        assert len(reply.body) > 1_000_000
    finally:
        for sock in opened:
            sock.close()


@pytest.mark.parametrize(
    ("head", "pool"),
    [
        (b"POST /api/v1/execution/a/1/attempts HTTP/1.1\r\n", "programs"),
        (b"GET /health HTTP/1.1\r\n", "probes"),
        (b"GET /health?x=1 HTTP/1.1\r\n", "probes"),
        (b"POST /admin/login/ HTTP/1.1\r\n", "people"),
        (b"POST /%61dmin/login/ HTTP/1.1\r\n", "people"),
        (b"POST http://a/api/v1/execution HTTP/1.1\r\n", "people"),
        (b"nonsense", "people"),
    ],
)
def test_an_address_that_is_not_plainly_the_apis_goes_to_the_threads_of_people(head: bytes, pool: str) -> None:
    assert pool_for(head) == pool


@pytest.mark.parametrize(
    ("address", "counted"),
    [("127.0.0.1", False), ("::ffff:127.0.0.1", False), ("10.1.2.3", False), ("192.0.2.7", True), ("", False)],
)
def test_connections_of_proxies_are_not_counted_by_address(address: str, counted: bool) -> None:
    assert EdgeLimits(proxies=("127.0.0.1", "10.0.0.0/8")).counted(address) is counted


def test_the_figures_say_why_connections_were_ended(edge: Edge) -> None:
    with closing(edge.connect()) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        text = b""
        while data := sock.recv(65536):
            text += data
    assert b'holdpoint_web_connections_ended_total{why="slow_body"}' in text
