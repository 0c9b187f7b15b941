"""Reads parts of documents that may be broken. The rules must report what they can and never raise."""

from __future__ import annotations

from typing import Any


def dig(value: Any, *path: str) -> Any:
    """The value at this path, or None if a part of the path is missing or not an object."""
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def whole(value: Any) -> int | None:
    """The value if it is an integer, otherwise None. In Python `True` is an integer; here it is not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def texts_in(value: Any) -> frozenset[str]:
    """The texts in a list. Anything else is ignored, because the schema reports it."""
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()


def objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a list with their positions."""
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value) if isinstance(item, dict)]
