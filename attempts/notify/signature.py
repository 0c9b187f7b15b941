"""Slack's request signature (v0), over the raw bytes, in constant time, within five minutes. Pure."""

import hmac
from hashlib import sha256

SKEW_SECONDS = 300


def slack_signature(*, secret: str, timestamp: str, body: bytes) -> bytes:
    text = b"v0:" + timestamp.encode() + b":" + body
    return b"v0=" + hmac.new(secret.encode(), text, sha256).hexdigest().encode()


def slack_signature_fits(*, secret: str, timestamp: str, signature: str, body: bytes, now: float) -> bool:
    """Compared as bytes: `compare_digest` raises on text that is not ASCII, and headers are the sender's."""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return False
    expected = slack_signature(secret=secret, timestamp=timestamp, body=body)
    fits = hmac.compare_digest(expected, signature.encode("utf-8", "surrogatepass"))
    return fits and abs(now - int(timestamp)) <= SKEW_SECONDS
