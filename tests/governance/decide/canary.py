"""Marked values that must not enter the record, and every place where one could have got to."""

import base64
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.logs import logging_settings
from config.metrics import render_metrics
from governance.outside.valkey import valkey
from tests.governance.support import everything_stored

MARK = "zx81q"
_LONG = f"The patient {MARK} came in on Monday and complained about a headache that would not go away for weeks. " * 3
_BLOB = base64.b64encode(f"\x89PNG {MARK} ".encode() * 20).decode()
_CLAIMS = base64.urlsafe_b64encode(f'{{"sub":"{MARK}"}}'.encode()).decode().rstrip("=")
JWT = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{_CLAIMS}.{MARK}AAAAbbbbCCCCddddEEEEffffGGGGhhhhIIIIjjjj0"
VALUES = {
    "email": f"jane.{MARK}@example.com",
    "phone": "+1 (415) 555-0134",
    "name": f"Mrs. Jane {MARK.title()} Quimbly",
    "ssn": "536-90-4399",
    "card": "4539 1488 0343 6467",
    "birth": "born 1961-07-23",
    "token": JWT,
    "pem": f"-----BEGIN PRIVATE KEY-----\nMIIE{MARK}vQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
    "prose": _LONG,
    "image": f"data:image/png;base64,{_BLOB}",
}
# What would be found of each value, whatever a serializer did to spaces and line ends around it.
TRACES = [
    MARK,
    MARK.title(),
    "555-0134",
    "14155550134",
    "536-90-4399",
    "536904399",
    "4539 1488 0343 6467",
    "4539148803436467",
    "1961-07-23",
    _BLOB[:40],
    _CLAIMS,
]


@contextmanager
def everything_logged() -> Iterator[io.StringIO]:
    """Through the formatter that production uses, from level DEBUG on."""
    stream = io.StringIO()
    spec = dict(logging_settings(level="INFO")["formatters"]["json"])
    handler = logging.StreamHandler(stream)
    handler.setFormatter(spec.pop("()")(**spec))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield stream
    finally:
        root.removeHandler(handler)


def everything_in_valkey() -> str:
    found = []
    client: Any = valkey()
    for key in client.scan_iter():
        kind = str(client.type(key))
        if kind == "none":  # it ran out since it was listed
            continue
        reads = {
            "string": client.get,
            "hash": client.hgetall,
            "list": lambda key: client.lrange(key, 0, -1),
            "set": client.smembers,
            "zset": lambda key: client.zrange(key, 0, -1),
            "stream": client.xrange,
        }
        found.append(f"{key!r} {reads[kind](key)!r}")
    return "\n".join(found)


def traces_in(text: str) -> list[str]:
    return [trace for trace in TRACES if trace in text]


def places(logged: io.StringIO) -> dict[str, str]:
    """Admin history and sessions are tables like any other."""
    return {
        "database": everything_stored(),
        "log": logged.getvalue(),
        "valkey": everything_in_valkey(),
        "metrics": render_metrics().decode(),
    }
