"""One try of a delivery over HTTP. The address is checked when the socket is opened; redirects are not followed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import httpx
import structlog

from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check

# For the whole exchange. Without it a receiver that sends one byte at a time would keep a sender's thread for ever.
SECONDS = 15.0
# Only a hash of the answer is kept. Without a limit a receiver could make us read for as long as the deadline allows.
READ_LIMIT_BYTES = 64 * 1024
GONE = 410
USER_AGENT = "holdpoint-webhooks/1"

DELIVERED, REFUSED, REDIRECTED, GONE_OUTCOME = "delivered", "refused", "redirected", "gone"
TIMEOUT, NO_CONNECTION, ADDRESS_REFUSED = "timeout", "no_connection", "address_refused"
ANSWER_LOST, FAULT = "answer_lost", "fault"
log = structlog.get_logger("holdpoint.webhooks")


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """What one try needs. No database rows: it runs in a thread without a connection."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    private_hosts: frozenset[str]
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class WebhookResult:
    outcome: str
    status: int | None = None
    duration_ms: int = 0
    response_bytes: int | None = None
    response_sha256: str = ""
    truncated: bool = False
    retry_after: float | None = None


def webhook_send(sending: WebhookRequest) -> WebhookResult:
    """Send once. Whatever the receiver, the host name or the URL does becomes a result and no exception."""
    began = time.monotonic()
    backend = GuardedBackend(private_hosts=sending.private_hosts, seconds=sending.seconds)
    try:
        url_check(sending.url, private_hosts=sending.private_hosts)
        with guarded_client(backend) as client:
            return _exchange(client, sending, began)
    except AddressRefused:
        return WebhookResult(ADDRESS_REFUSED, duration_ms=_since(began))
    except httpx.TimeoutException:
        return WebhookResult(TIMEOUT, duration_ms=_since(began))
    except (httpx.HTTPError, OSError):
        # After the request was sent the receiver may have processed it; people must be able to tell the two apart.
        return WebhookResult(ANSWER_LOST if backend.sent else NO_CONNECTION, duration_ms=_since(began))
    except Exception as error:  # a fault of ours must not stop the other deliveries
        log.error("webhook_fault", error=type(error).__name__)
        return WebhookResult(FAULT, duration_ms=_since(began))


def _exchange(client: httpx.Client, sending: WebhookRequest, began: float) -> WebhookResult:
    with client.stream("POST", sending.url, content=sending.body, headers=dict(sending.headers)) as response:
        read, whole = _read(response)
        return WebhookResult(
            outcome=_webhook_outcome(response.status_code),
            status=response.status_code,
            duration_ms=_since(began),
            response_bytes=len(read),
            response_sha256=sha256(read).hexdigest(),
            truncated=not whole,
            retry_after=_seconds(response.headers.get("retry-after", "")),
        )


def _read(response: httpx.Response) -> tuple[bytes, bool]:
    """The beginning of the answer, and whether it is all of it. The result depends on the status line alone."""
    # Raw and not decompressed: a small compressed answer could unpack to gigabytes.
    read = b""
    try:
        for chunk in response.iter_raw():
            read += chunk
            if len(read) > READ_LIMIT_BYTES:
                return read[:READ_LIMIT_BYTES], False
    except httpx.HTTPError:
        return read, False
    return read, True


def _webhook_outcome(status: int) -> str:
    if 200 <= status < 300:
        return DELIVERED
    if 300 <= status < 400:
        return REDIRECTED
    return GONE_OUTCOME if status == GONE else REFUSED


def _seconds(text: str) -> float | None:
    """The seconds of `Retry-After`. A date is ignored: the schedule waits long enough."""
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 8 else None


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
