"""Identifiers: UUIDv7 everywhere, so that ids sort by time and index well."""

from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7


def uuid7() -> UUID:
    """A fresh id. Named function, so that migrations can refer to it."""
    return _uuid7()
