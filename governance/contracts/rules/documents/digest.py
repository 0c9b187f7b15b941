"""The hash that a readiness approval is bound to."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def document_sha256(document: Any) -> str:
    """Hex SHA-256 of the canonical JSON (RFC 8785), so that key order and spacing do not matter.

    Every document that `validate_document` accepts can be hashed. Others may raise ValueError.
    """
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()
