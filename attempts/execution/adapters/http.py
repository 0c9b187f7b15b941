"""Sends a signed POST to the URL that an operator set for the route. The receiver deduplicates on `Idempotency-Key`."""

import json
import socket
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


class HttpAdapter:
    name = "http"
    effect = "idempotent"
    retryable: tuple[str, ...] = ("429", "5xx", "no connection")

    def receiver(self, route: str) -> str:
        try:
            parsed = httpx.URL(http_target(route))
        except httpx.InvalidURL:
            return ""
        return parsed.netloc.decode("ascii", "replace").rpartition("@")[2].lower()

    def call(self, call: AdapterCall) -> Outcome:
        url, private = http_target(call.route), http_private_hosts()
        if not url:
            return failure("target_not_configured")
        backend = GuardedBackend(private_hosts=private, seconds=call.seconds)
        try:
            url_check(url, private_hosts=private)
            with guarded_client(backend) as client:
                return exchange(client, url, call)
        except AddressRefused:
            return failure("address_refused")
        except (httpx.HTTPError, httpx.InvalidURL, socket.gaierror, OSError) as error:
            # The backend notes when the first byte goes out. Before that a retry is safe; after it, the receiver may
            # have acted.
            why = "timeout" if isinstance(error, httpx.TimeoutException) else "connection"
            return unknown(why) if backend.sent else failure("no_connection", retryable=True)


def exchange(client: httpx.Client, url: str, call: AdapterCall) -> Outcome:
    body = json.dumps(call.document(), separators=(",", ":")).encode()
    signed = signature_headers(
        organization_id=call.organization_id, message_id=str(call.attempt_id), at=datetime.now(UTC), body=body
    )
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": call.effect_key,
        "User-Agent": "holdpoint",
        "traceparent": trace_or_new().traceparent,
        **signed,
    }
    with client.stream("POST", url, content=body, headers=headers) as response:
        return _status_outcome(response.status_code, _read_facts(response))


def _read_facts(response: httpx.Response) -> dict[str, Any]:
    """Size and hash of the answer. The answer itself is not kept, because it may contain anything."""
    digest, size = sha256(), 0
    try:
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > READ_LIMIT_BYTES:
                return {"truncated": True}
            digest.update(chunk)
    except httpx.HTTPError:
        # The status line has arrived and decides the outcome; a body that breaks off must not make it unknown.
        return {"truncated": True}
    return {"response_bytes": size, "response_sha256": digest.hexdigest()}


def _status_outcome(status: int, facts: dict[str, Any]) -> Outcome:
    """The outcome by status. A redirect is not followed, so it is a failure: the receiver did not act."""
    if 200 <= status < 300:
        return success(status=status, **facts)
    return failure("refused", retryable=status in RETRYABLE_STATUSES, status=status, **facts)
