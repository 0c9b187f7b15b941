"""The hash of a policy document. A readiness approval is bound to it."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def document_sha256(document: Any) -> str:
    """Hex SHA-256 of the canonical JSON (RFC 8785), so that the order of keys and spaces do not matter. Every document
    that `validate_document` accepts can be hashed; others may raise ValueError."""
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()
