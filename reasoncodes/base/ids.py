"""Identifiers: UUIDv7 everywhere, so that ids sort by time and index well."""

import re
from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7

# As it is written: Python would take braces, a urn and missing hyphens too.
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def uuid7() -> UUID:
    """A fresh id. Named function, so that migrations can refer to it."""
    return _uuid7()
