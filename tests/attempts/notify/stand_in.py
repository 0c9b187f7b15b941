"""Plays Slack on loopback: its Web API, errors on demand, and its side of the signature by its own library."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

from django.test import Client
from slack_sdk.signature import SignatureVerifier

from attempts.notify.rules.delivery import slack_signature

TEAM, CHANNEL, TOKEN, SECRET = "T0CLINIC1", "C0REVIEWS", "xoxb-test-token-0001", "signing-secret-0001"


@dataclass
class SlackStandIn:
    """`answers[method]`: what the next calls get, then `{"ok": true}`. A number hangs for so many seconds."""

    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    answers: dict[str, list[Any]] = field(default_factory=dict)
    posted: int = 0

    def of(self, method: str) -> list[dict[str, Any]]:
        return [body for name, body in self.calls if name == method]

    def whispers(self) -> list[str]:
        return [body["text"] for body in self.of("chat.postEphemeral")]

    def answer(self, method: str) -> tuple[int, dict[str, str], bytes]:
        chosen = self.answers.get(method) or []
        given = chosen.pop(0) if chosen else None
        if isinstance(given, float):
            time.sleep(given)
            given = None
        if isinstance(given, str):
            return 200, {}, json.dumps({"ok": False, "error": given}).encode()
        if given is not None:
            return given
        self.posted += 1
        return 200, {}, json.dumps({"ok": True, "ts": f"1700000000.{self.posted:06}", "channel": CHANNEL}).encode()


@contextmanager
def slack_running() -> Iterator[SlackStandIn]:
    slack = SlackStandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = self.path.removeprefix("/api/")
            slack.tokens.add(self.headers["Authorization"])
            slack.calls.append((method, body))
            status, headers, data = slack.answer(method)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that gave up is what some tests want."""

    server = Server(("127.0.0.1", 0), Handler)
    slack.url = f"http://127.0.0.1:{server.server_address[1]}/api/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield slack
    finally:
        server.shutdown()
        server.server_close()


def signed(body: bytes, *, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """Slack's headers over these bytes."""
    timestamp = str(int(time.time() if at is None else at))
    try:
        signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body)
    except UnicodeDecodeError:  # the library signs text only
        signature = slack_signature(secret=secret, timestamp=timestamp, body=body).decode()
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": str(signature)}


def deliver(address: str, body: bytes, headers: dict[str, str], client: Client | None = None) -> Any:
    client = client or Client(raise_request_exception=False, enforce_csrf_checks=True)
    return client.post(address, body, content_type="application/x-www-form-urlencoded", headers=headers)


def call_back(address: str, document: dict[str, Any], **how: Any) -> Any:
    body = urlencode({"payload": json.dumps(document)}).encode()
    return deliver(address, body, signed(body, **how))


def click(card: dict[str, Any], action: str, *, user: str, team: str = TEAM) -> dict[str, Any]:
    """What Slack sends for a button of this card."""
    buttons = [one for block in card["blocks"] for one in block.get("elements", []) if one.get("action_id") == action]
    value = buttons[0].get("value", "") if buttons else "00000000-0000-7000-8000-000000000000:x"
    return {
        "type": "block_actions",
        "team": {"id": team},
        "user": {"id": user},
        "trigger_id": "123.456",
        "container": {"channel_id": CHANNEL},
        "actions": [{"action_id": action, "value": value}],
    }


def submit(view: dict[str, Any], *, user: str, reason: str, note: str = "") -> dict[str, Any]:
    """What Slack sends for a filled-in form."""
    values = {
        "reason": {"reason": {"selected_option": {"value": reason}}},
        "note": {"note": {"value": note or None}},
    }
    shown = {name: view[name] for name in ("callback_id", "private_metadata")}
    return {
        "type": "view_submission",
        "team": {"id": TEAM},
        "user": {"id": user},
        "view": shown | {"state": {"values": values}},
    }
