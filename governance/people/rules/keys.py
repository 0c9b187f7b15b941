"""What an API key looks like and how it is kept: `hp_<prefix>_<secret>`, stored as SHA-256; and how it signs.

A message on a stream cannot carry the key itself, because whoever reads the stream would have it. It carries a
signature that only the key's holder can make, and that the public half, stored beside the hash, can check.
"""

import hmac
from base64 import b64decode, b64encode
from hashlib import sha256
from secrets import token_hex, token_urlsafe

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

STREAM_PURPOSE = b"holdpoint.stream.v1"


def key_hash(secret: str) -> bytes:
    """32 random bytes need no slow hash: there is nothing to guess."""
    return sha256(secret.encode()).digest()


def key_generate() -> tuple[str, str]:
    """(prefix that may be shown, the whole key)."""
    prefix = token_hex(5)
    return prefix, f"hp_{prefix}_{token_urlsafe(32)}"


def prefix_of(secret: str) -> str:
    """The part that may be shown; nothing when the text has not the form of a key."""
    parts = secret.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "hp" else ""


def stream_key(secret: str) -> Ed25519PrivateKey:
    """Derived, so that a module keeps one secret; it cannot be turned back into the key."""
    return Ed25519PrivateKey.from_private_bytes(hmac.new(secret.encode(), STREAM_PURPOSE, sha256).digest())


def stream_public_key(secret: str) -> bytes:
    return stream_key(secret).public_key().public_bytes_raw()


def stream_sign(*, secret: str, data: bytes) -> str:
    """What stands in a message's field `signature`, over the exact bytes of its field `data`."""
    return b64encode(stream_key(secret).sign(STREAM_PURPOSE + b"\n" + data)).decode()


def stream_signature_fits(*, public_key: bytes, data: bytes, signature: str) -> bool:
    try:
        given = b64decode(signature.encode("ascii"), validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(given, STREAM_PURPOSE + b"\n" + data)
    except (InvalidSignature, ValueError):
        return False
    return True
