"""A receiver on loopback that counts what reaches it, by key. It answers as it is told."""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class CountingTarget:
    """`statuses` are used up one by one, then it is always 200. With `hold` it takes a request and never answers; with
    `pause` it answers once `release` is set."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[dict[str, Any]] = []
        self.effects: Counter[str] = Counter()
        self.arrived = threading.Event()
        self.release = threading.Event()
        self.hold = self.pause = False
        self.headers: dict[str, str] = {}
        self.body = b'{"ok":true}'
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                target.answer(self)

            def log_message(self, *_: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # with the usual five, a burst makes connections wait for seconds

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        key = handler.headers["Idempotency-Key"]
        self.requests.append({"key": key, "headers": dict(handler.headers), "raw": raw, "body": json.loads(raw)})
        status = self.statuses.pop(0) if self.statuses else 200
        if status < 300:
            self.effects[key] += 1
        self.arrived.set()
        if self.hold or self.pause:
            self.release.wait(60)
        if self.hold:
            return
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(self.body)))
        handler.end_headers()
        handler.wfile.write(self.body)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/hook"

    def stop(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
