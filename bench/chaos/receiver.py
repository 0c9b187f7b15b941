"""The systems outside: a receiver of the HTTP adapter and of webhooks that writes down everything that reaches it."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from bench.chaos.history import History

# Of 100 calls: how many fail, and how many take long.
FAILING, SLOW = 6, 4


class Receiver:
    def __init__(self, history: History, seed: int) -> None:
        receiver = self
        self.history, self.random = history, Random(f"{seed}/receiver")

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if handler.path == "/webhook":
            self.history.write("webhook", at=self.history.now(), id=handler.headers.get("webhook-id", ""))
            return self._say(handler, 200)
        # Written down before it is answered: what was received has happened.
        self.history.write("effect", at=self.history.now(), attempt=handler.headers.get("webhook-id", ""))
        luck = self.random.randrange(100)
        if luck < SLOW:
            time.sleep(2)
        return self._say(handler, 500 if luck >= 100 - FAILING else 200)

    @staticmethod
    def _say(handler: BaseHTTPRequestHandler, status: int) -> None:
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", "11")
            handler.end_headers()
            handler.wfile.write(b'{"ok":true}')
        except OSError:
            return

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
