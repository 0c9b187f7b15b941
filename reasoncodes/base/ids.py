"""Identifiers: UUIDv7 everywhere, so that ids sort by time and new rows go to the end of an index."""

import re
from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7

# The canonical form only. Python's UUID() also accepts braces, a urn and missing hyphens: one id would have many texts.
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def uuid7() -> UUID:
    """A new id. A named function, so that migrations can refer to it."""
    return _uuid7()
