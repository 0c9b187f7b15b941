"""Sends a signed POST to the URL that an operator set for the route. The receiver deduplicates on `Idempotency-Key`."""

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import httpx

from attempts.execution.adapters.base import AdapterCall, Outcome, failure, signature_headers, success, unknown
from attempts.execution.configured import http_private_hosts, http_target
from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check
from reasoncodes.base.trace import trace_or_new

READ_LIMIT_BYTES = 64 * 1024  # a receiver that answers without end must not occupy a worker
RETRYABLE_STATUSES = frozenset({429, *range(500, 600)})


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """One request, complete."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`body` None: it was too long, or broke off."""

    status: int
    body: bytes | None

    @property
    def facts(self) -> dict[str, Any]:
        """Size and hash. The answer itself is not kept, because it may contain anything."""
        if self.body is None:
            return {"truncated": True}
        return {"response_bytes": len(self.body), "response_sha256": sha256(self.body).hexdigest()}


class HttpAdapter:
    name = "http"
    effect = "idempotent"
    retryable: tuple[str, ...] = ("429", "5xx", "no connection")

    def receiver(self, route: str) -> str:
        return receiver_of(http_target(route))

    def call(self, call: AdapterCall) -> Outcome:
        url = http_target(call.route)
        if not url:
            return failure("target_not_configured")
        return http_exchange(
            lambda: _message(url, call),
            private_hosts=http_private_hosts(),
            seconds=call.seconds,
            judge=lambda answer: _status_outcome(answer.status, answer.facts),
        )


def receiver_of(url: str) -> str:
    """Host and port; empty if it is no address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return ""
    return parsed.netloc.decode("ascii", "replace").rpartition("@")[2].lower()


def http_exchange(
    message: Callable[[], HttpMessage],
    *,
    private_hosts: frozenset[str],
    seconds: float,
    judge: Callable[[HttpAnswer], Outcome],
) -> Outcome:
    """One guarded exchange under one deadline. `judge` says what an answer means; without one it is known whether
    anything was sent."""
    backend = GuardedBackend(private_hosts=private_hosts, seconds=seconds)
    try:
        made = message()
        url_check(made.url, private_hosts=private_hosts)
        with guarded_client(backend) as client:
            return judge(_exchange(client, made))
    except AddressRefused:
        return failure("address_refused")
    except (httpx.HTTPError, httpx.InvalidURL, socket.gaierror, OSError) as error:
        # The backend notes when the first byte goes out. Before that a retry is safe; after it, the receiver may
        # have acted.
        why = "timeout" if isinstance(error, httpx.TimeoutException) else "connection"
        return unknown(why) if backend.sent else failure("no_connection", retryable=True)


def _message(url: str, call: AdapterCall) -> HttpMessage:
    body = json.dumps(call.document(), separators=(",", ":")).encode()
    signed = signature_headers(
        organization_id=call.organization_id, message_id=str(call.attempt_id), at=datetime.now(UTC), body=body
    )
    return HttpMessage(url, body, call_headers(call.effect_key) | signed)


def call_headers(key: str) -> dict[str, str]:
    """What every call has beside its signature."""
    return {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "User-Agent": "holdpoint",
        "traceparent": trace_or_new().traceparent,
    }


def _exchange(client: httpx.Client, message: HttpMessage) -> HttpAnswer:
    content, headers = message.body or None, dict(message.headers)
    with client.stream(message.method, message.url, content=content, headers=headers) as response:
        return HttpAnswer(response.status_code, _read_body(response))


def _read_body(response: httpx.Response) -> bytes | None:
    read = b""
    try:
        for chunk in response.iter_raw():
            read += chunk
            if len(read) > READ_LIMIT_BYTES:
                return None
    except httpx.HTTPError:
        # The status line has arrived and decides the outcome; a body that breaks off must not make it unknown.
        return None
    return read


def _status_outcome(status: int, facts: dict[str, Any]) -> Outcome:
    """The outcome by status. A redirect is not followed, so it is a failure: the receiver did not act."""
    if 200 <= status < 300:
        return success(status=status, **facts)
    return failure("refused", retryable=status in RETRYABLE_STATUSES, status=status, **facts)
