"""The form of an API key (`hp_<prefix>_<secret>`), its hash, when its end is told, and its signatures on stream
messages.

A message on a stream cannot carry the key, because everybody who reads the stream would have it. It carries a signature
that only the owner of the key can make. The public half, stored beside the hash, checks it.
"""

import hmac
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from secrets import token_hex, token_urlsafe

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# Part of the derivation and of every signed text: a signature made for another purpose is not valid here.
STREAM_PURPOSE = b"holdpoint.stream.v1"

# Days before a key's end at which its people are told; in the last ones answers carry `Sunset` too.
TELL_DAYS = (1, 7, 30)


def days_left(*, ends: datetime, at: datetime) -> int:
    """Whole days until the end, rounded up: 0 only in the moment itself, negative afterwards."""
    return math.ceil((ends - at).total_seconds() / 86_400) if ends > at else -1


def tell_now(*, ends: datetime, at: datetime) -> int | None:
    """Which of TELL_DAYS is due: the smallest that the remaining time fits into; None while the end is far, or over."""
    days = days_left(ends=ends, at=at)
    return next((limit for limit in TELL_DAYS if 0 <= days <= limit), None)


def key_hash(secret: str) -> bytes:
    """SHA-256 of the whole key, as it is stored."""
    # A slow password hash would cost every request and protect nothing: 32 random bytes cannot be guessed.
    return sha256(secret.encode()).digest()


def key_generate() -> tuple[str, str]:
    """(the prefix, which may be shown; the whole key)."""
    prefix = token_hex(5)
    return prefix, f"hp_{prefix}_{token_urlsafe(32)}"


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """What is stored of a key. The clear text cannot be made from it."""

    prefix: str
    sha256: bytes
    stream_key: bytes

    def as_json(self) -> dict[str, str]:
        return {"prefix": self.prefix, "sha256": self.sha256.hex(), "stream_key": self.stream_key.hex()}

    @classmethod
    def from_json(cls, stored: Mapping[str, str]) -> "KeyMaterial":
        return cls(stored["prefix"], bytes.fromhex(stored["sha256"]), bytes.fromhex(stored["stream_key"]))


def key_material(secret: str) -> KeyMaterial:
    return KeyMaterial(prefix_of(secret), key_hash(secret), stream_public_key(secret))


def prefix_of(secret: str) -> str:
    """The prefix of a key; empty if the text does not have the form of a key."""
    parts = secret.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "hp" else ""


def stream_key(secret: str) -> Ed25519PrivateKey:
    """The signing key, derived from the API key, so that a module has one secret to keep. It does not reveal the API
    key."""
    return Ed25519PrivateKey.from_private_bytes(hmac.new(secret.encode(), STREAM_PURPOSE, sha256).digest())


def stream_public_key(secret: str) -> bytes:
    return stream_key(secret).public_key().public_bytes_raw()


def stream_sign(*, secret: str, data: bytes) -> str:
    """The value of a message's field `signature`, over the exact bytes of its field `data`."""
    return b64encode(stream_key(secret).sign(STREAM_PURPOSE + b"\n" + data)).decode()


def stream_signature_fits(*, public_key: bytes, data: bytes, signature: str) -> bool:
    """False for a wrong signature and for text that is not base64."""
    try:
        given = b64decode(signature.encode("ascii"), validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(given, STREAM_PURPOSE + b"\n" + data)
    except (InvalidSignature, ValueError):
        return False
    return True
