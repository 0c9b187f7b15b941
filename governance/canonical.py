"""Canonical JSON (RFC 8785) and its hash: the same content gives the same bytes on every machine, in every year."""

from hashlib import sha256
from typing import Any

import rfc8785


def canonical_bytes(value: Any) -> bytes:
    """Raises rfc8785.CanonicalizationError for what JSON cannot hold exactly (integers from 2^53, NaN)."""
    return rfc8785.dumps(value)


def canonical_sha256(value: Any) -> str:
    """Lower-case hex."""
    return sha256(canonical_bytes(value)).hexdigest()
