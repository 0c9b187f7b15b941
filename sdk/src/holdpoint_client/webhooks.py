"""Checks a webhook's signature (Standard Webhooks, `v1`): who sent it, that it is unchanged, and that it is fresh."""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from holdpoint_client.errors import WebhookRefused

TOLERANCE = 300  # seconds, before and after


@dataclass(frozen=True, slots=True)
class Webhook:
    """`id` is the same when the message comes again: do the work once per id."""

    id: str
    timestamp: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def verify_webhook(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> Webhook:
    """The message, or WebhookRefused. `body` is the request's exact bytes. Of several secrets one must fit: while a
    secret is changed, both are valid."""
    given = {name.lower(): value for name, value in headers.items()}
    id_, stamp, signatures = (given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (id_ and stamp and signatures):
        raise WebhookRefused("a webhook header is missing")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) < 16):
        raise WebhookRefused("the timestamp is no number")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise WebhookRefused("the timestamp is too old or too new")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    signed = b".".join([id_.encode("utf-8", "surrogateescape"), stamp.encode(), body])
    expected = [hmac.new(_key(one), signed, sha256).digest() for one in secrets]
    if not _fits(signatures, expected):
        raise WebhookRefused("no signature fits")
    return Webhook(id_, int(stamp), body)


def _fits(signatures: str, expected: list[bytes]) -> bool:
    """Every pair is compared, in constant time each: which secret it was is nobody's business."""
    found = False
    for part in signatures.split(" ")[:16]:
        version, _, text = part.partition(",")
        if version != "v1":
            continue
        try:
            given = base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            continue
        for one in expected:
            found |= hmac.compare_digest(given, one)
    return found


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("a webhook secret looks like whsec_… with base64 after it")
    return key
