"""What both clients share around httpx: headers, time limits, and telling an unsent request from a lost answer."""

from datetime import UTC, datetime
from typing import Any

import httpx

from holdpoint_client.exchange import Call, Lost, Reply, Send, reply_of
from holdpoint_client.settings import Settings

VERSION = "0.2.0"
API = "/api/v1"
# Nothing of the request has left: there was no connection to write it to.
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
# Shorter than servers keep a connection open: a request into one that just closed could not be told from a lost one.
LIMITS = httpx.Limits(max_connections=20, max_keepalive_connections=10, keepalive_expiry=1.0)


def request_parts(settings: Settings, send: Send) -> dict[str, Any]:
    """The keyword arguments of httpx's `request`; built from the call alone, so every try is the same."""
    call = send.call
    return {
        "method": call.method,
        "url": settings.url + (call.path if call.path.startswith(API) else API + call.path),
        "params": list(call.params) or None,
        "content": call.body,
        "headers": headers_of(settings, call),
        "timeout": httpx.Timeout(send.timeout, connect=min(5.0, send.timeout), pool=min(5.0, send.timeout)),
        "follow_redirects": False,
    }


def headers_of(settings: Settings, call: Call) -> dict[str, str]:
    key = settings.executor_key if call.executes else settings.key or settings.executor_key
    known = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, application/problem+json",
        "User-Agent": f"holdpoint-client/{VERSION}",
    }
    return known | dict(call.headers)


def reply_from(response: httpx.Response) -> Reply:
    return reply_of(response.status_code, dict(response.headers), response.content, wall=datetime.now(UTC))


def lost_from(error: httpx.RequestError) -> Lost:
    """In our words: a library's text may carry what was sent."""
    sent = not isinstance(error, UNSENT)
    if isinstance(error, httpx.TimeoutException):
        return Lost("no answer in time" if sent else "no connection in time", sent)
    return Lost("the connection broke" if sent else "no connection", sent)
