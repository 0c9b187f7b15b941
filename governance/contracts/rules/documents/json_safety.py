"""Checks that a value is JSON with a canonical form, and that integers are written as integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from governance.contracts.rules.documents.area import DocumentProblem

# Documents are walked and hashed recursively: a deeper one could exhaust the call stack.
MAX_DEPTH = 32
# RFC 8785 numbers are IEEE doubles: beyond this, two different integers could have the same hash.
MAX_INTEGER = 2**53 - 1


def pointer_to(*parts: str | int) -> str:
    """JSON Pointer (RFC 6901) of a path."""
    return "".join("/" + _printable(str(part)).replace("~", "~0").replace("/", "~1") for part in parts)


def _printable(part: str) -> str:
    return part.encode("utf-8", "replace").decode()[:80]


def unsafe_values(value: Any, *, path: tuple[str | int, ...] = ()) -> Iterator[DocumentProblem]:
    """What keeps a value from having a canonical form. Nothing else can be checked before that."""
    message = "is nested too deeply" if len(path) > MAX_DEPTH else _unsafe_scalar(value)
    if message is not None:
        yield DocumentProblem(pointer_to(*path), "not_canonical_json", message)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or _unsafe_text(key):
                yield DocumentProblem(pointer_to(*path), "not_canonical_json", "has a key that is not Unicode text")
            else:
                yield from unsafe_values(item, path=(*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unsafe_values(item, path=(*path, index))


def _unsafe_scalar(value: Any) -> str | None:
    """Why this value has no canonical form, or None. Containers are judged by their members."""
    if value is None or isinstance(value, bool | dict | list):
        return None
    if isinstance(value, str):
        return "is not valid Unicode text" if _unsafe_text(value) else None
    if isinstance(value, int):
        return None if abs(value) <= MAX_INTEGER else "is an integer beyond 2^53 - 1; write it as text"
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number"
    return "is not a JSON value"


def _unsafe_text(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def integers_written_as_floats(
    value: Any, *, schema: dict[str, Any], path: tuple[str | int, ...] = ()
) -> Iterator[DocumentProblem]:
    """Fields such as 5.0 where the schema says integer. JSON Schema accepts them; code that reads the document expects
    an int."""
    if isinstance(value, float) and value.is_integer() and "integer" in schema.get("type", ()):
        yield DocumentProblem(
            pointer_to(*path), "integer_form", "must be written as an integer, without a decimal point"
        )
    elif isinstance(value, dict):
        for key, part in schema.get("properties", {}).items():
            if key in value:
                yield from integers_written_as_floats(value[key], schema=part, path=(*path, key))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from integers_written_as_floats(item, schema=schema["items"], path=(*path, index))
