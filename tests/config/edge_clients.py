"""Clients that hold a web server up on purpose, and the ones beside them that only want an answer. Also used by the
bench."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

TOKEN = "a" * 32


@dataclass
class Edge:
    """A web server on loopback with the demo's contracts."""

    port: int
    demo: dict[str, Any]
    seconds: float = 20

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=self.seconds, source_address=(address, 0))

    def request(self, method: str, path: str, body: bytes = b"", *, address: str = "", **headers: str) -> int:
        source = (address or "127.0.0.1", 0)
        sender = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds, source_address=source)
        try:
            sender.request(method, path, body or None, headers)
            answer = sender.getresponse()
            answer.read()
            return answer.status
        finally:
            sender.close()

    def health(self) -> int:
        return self.request("GET", "/health")

    def intake(self) -> int:
        return self.request("POST", self.door, self.example, **self.intake_headers)

    @property
    def door(self) -> str:
        route = self.demo["contracts"]["allow"]
        return f"/api/v1/execution/{route['slug']}/{route['version']}/attempts"

    @property
    def example(self) -> bytes:
        return json.dumps(self.demo["attempt_example"] | {"runtime_mode": "shadow"}).encode()

    @property
    def intake_headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.demo['keys']['caller']}",
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid4()),
        }

    def head(self, *more: str) -> bytes:
        lines = [f"{name}: {value}" for name, value in self.intake_headers.items()]
        return "\r\n".join([f"POST {self.door} HTTP/1.1", "Host: 127.0.0.1", *lines, *more, "", ""]).encode()

    def wrong_password(self, number: int) -> int:
        """Of a person whom nobody knows, from an address of its own: no lockout spares us the hashing."""
        form = {"csrfmiddlewaretoken": TOKEN, "username": f"nobody-{uuid4().hex}", "password": "wrong"}
        return self.request(
            "POST",
            "/admin/login/",
            urlencode(form).encode(),
            address=f"127.0.{1 + number // 250 % 250}.{1 + number % 250}",
            **{"Cookie": f"csrftoken={TOKEN}", "Content-Type": "application/x-www-form-urlencoded"},
        )


@contextmanager
def sockets(edge: Edge, count: int, sent: Callable[[], bytes]) -> Iterator[list[socket.socket]]:
    """Connections that send this much and then nothing more."""
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            sock = edge.connect()
            opened.append(sock)
            sock.sendall(sent())
        yield opened
    finally:
        for sock in opened:
            sock.close()


@contextmanager
def guessers(edge: Edge, count: int) -> Iterator[list[int]]:
    """Threads that try wrong passwords as fast as they are answered; the statuses."""
    over, statuses, patient = threading.Event(), [], replace(edge, seconds=60)

    def guess(number: int) -> None:
        while not over.is_set():
            with suppress(OSError, http.client.HTTPException):
                statuses.append(patient.wrong_password(number))
            number += count

    with ThreadPoolExecutor(count) as pool:
        for number in range(count):
            pool.submit(guess, number)
        try:
            yield statuses
        finally:
            over.set()


@dataclass
class Asked:
    """Seconds of each answer, by what was asked; a refusal or an answer that never came is a fault."""

    seconds: dict[str, list[float]]
    faults: list[str]

    def of(self, share: float) -> dict[str, float]:
        ordered = {name: sorted(times) for name, times in self.seconds.items()}
        return {name: times[min(len(times) - 1, int(len(times) * share))] for name, times in ordered.items() if times}

    def __str__(self) -> str:
        p50, p99 = self.of(0.5), self.of(0.99)
        shown = [f"{name} p50 {p50[name] * 1000:.0f} ms, p99 {p99[name] * 1000:.0f} ms" for name in p50]
        return "; ".join([*shown, f"{len(self.faults)} without an answer"])


def ask(edge: Edge, *, times: int, pause: float = 0.0) -> Asked:
    """Health and intake in turn, each on a new connection, as a client that has none yet."""
    found = Asked({"health": [], "intake": []}, [])
    for _ in range(times):
        time.sleep(pause)
        for name, expected, call in (("health", 200, edge.health), ("intake", 201, edge.intake)):
            began = time.monotonic()
            try:
                status = call()
            except (OSError, http.client.HTTPException) as error:
                found.faults.append(f"{name}: {type(error).__name__}")
                if len(found.faults) > 2:
                    return found
                continue
            found.seconds[name].append(time.monotonic() - began)
            if status != expected:
                found.faults.append(f"{name}: {status}")
    return found
