"""What an API key looks like and how it is kept: `hp_<prefix>_<secret>`, stored as SHA-256."""

from hashlib import sha256
from secrets import token_hex, token_urlsafe


def key_hash(secret: str) -> bytes:
    """32 random bytes need no slow hash: there is nothing to guess."""
    return sha256(secret.encode()).digest()


def key_generate() -> tuple[str, str]:
    """(prefix that may be shown, the whole key)."""
    prefix = token_hex(5)
    return prefix, f"hp_{prefix}_{token_urlsafe(32)}"
