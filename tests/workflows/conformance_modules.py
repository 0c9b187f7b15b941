"""Modules for the conformance kit's tests: one as docs/modules.md demands, and each of the ways to get it wrong."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from holdpoint_client import WebhookRefused, verify_webhook

from sdk.conformance.messages import ModuleAnswer, Request

FOREVER = 10**12


class Module:
    """A conforming module in forty lines: check, deduplicate under a lock, work, remember the answer."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.effects: Counter[str] = Counter()
        self.answers: dict[str, tuple[bytes, ModuleAnswer]] = {}
        self.lock = threading.Lock()

    def take(self, request: Request) -> ModuleAnswer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            self.verify(headers, request.body)
        except WebhookRefused:
            return ModuleAnswer(401)
        try:
            document = json.loads(request.body)
        except ValueError:
            return ModuleAnswer(400)
        return self.once(headers.get("idempotency-key") or headers["webhook-id"], request.body, document)

    def verify(self, headers: dict[str, str], body: bytes) -> None:
        verify_webhook(self.secret, headers, body)

    def once(self, key: str, body: bytes, document: Any) -> ModuleAnswer:
        with self.lock:
            if key not in self.answers:
                self.answers[key] = (body, self.work(key, document))
            first, answer = self.answers[key]
        return answer if first == body else ModuleAnswer(422)

    def work(self, key: str, document: Any) -> ModuleAnswer:
        self.effects[key] += 1
        return ModuleAnswer(200, b'{"done":true}')

    def send(self, requests: list[Request]) -> list[ModuleAnswer]:
        """In place of a wire."""
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(self.take, requests))


class BelievesEverybody(Module):
    def verify(self, headers: dict[str, str], body: bytes) -> None:
        return


class TakesOldSignatures(Module):
    def verify(self, headers: dict[str, str], body: bytes) -> None:
        verify_webhook(self.secret, headers, body, tolerance=FOREVER)


class ChecksTheBodyOnlyIfSigned(Module):
    def verify(self, headers: dict[str, str], body: bytes) -> None:
        if "webhook-signature" in headers:
            super().verify(headers, body)


class ReadsOneSignature(Module):
    def verify(self, headers: dict[str, str], body: bytes) -> None:
        first = headers.get("webhook-signature", "").split(" ")[0]
        super().verify(headers | {"webhook-signature": first}, body)


class WorksEveryTime(Module):
    def once(self, key: str, body: bytes, document: Any) -> ModuleAnswer:
        return self.work(key, document)


class SaysDuplicate(Module):
    """Does it once, but a repetition looks like a failure to whoever repeats."""

    def once(self, key: str, body: bytes, document: Any) -> ModuleAnswer:
        with self.lock:
            if key in self.answers:
                return ModuleAnswer(409)
            self.answers[key] = (body, self.work(key, document))
            return self.answers[key][1]


class LooksBeforeItLocks(Module):
    def once(self, key: str, body: bytes, document: Any) -> ModuleAnswer:
        known = key in self.answers
        time.sleep(0.02)
        if not known:
            self.answers[key] = (body, self.work(key, document))
        first, answer = self.answers[key]
        return answer if first == body else ModuleAnswer(422)


class LetsForgersUseKeysUp(Module):
    def take(self, request: Request) -> ModuleAnswer:
        key = request.headers.get("Idempotency-Key") or request.headers.get("webhook-id", "")
        answer = super().take(request)
        if answer.status == 401:
            self.answers.setdefault(key, (request.body, ModuleAnswer(200, b'{"done":true}')))
        return answer


class WantsThingsInOrder(Module):
    def work(self, key: str, document: Any) -> ModuleAnswer:
        if document.get("type") == "workflow.completed":
            return ModuleAnswer(409)
        return super().work(key, document)


class TakesLateForForged(Module):
    def work(self, key: str, document: Any) -> ModuleAnswer:
        age = datetime.now(UTC) - datetime.fromisoformat(document["timestamp"])
        return ModuleAnswer(400) if age.total_seconds() > 300 else super().work(key, document)


class FallsOver(Module):
    def take(self, request: Request) -> ModuleAnswer:
        try:
            json.loads(request.body)
        except ValueError:
            return ModuleAnswer(500)
        return super().take(request)


@contextmanager
def served(module: Module) -> Iterator[str]:
    """The module on loopback; `/effects` counts what it did."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._say(module.take(Request(body, dict(self.headers))))

        def do_GET(self) -> None:
            self._say(ModuleAnswer(200, json.dumps(module.effects).encode()))

        def _say(self, answer: ModuleAnswer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
