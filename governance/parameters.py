"""Values in the form in which PostgreSQL's protocol takes a statement's parameters."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

Sent = bytes | None
TEXT, BINARY = 0, 1


class Ready(NamedTuple):
    """Parameters that are in the protocol's form already: each one's bytes, and whether that is its text or not."""

    values: list[Sent]
    formats: Sequence[int]


def ready(params: Sequence[Any]) -> Ready:
    """As text, whose type the statement says; what is shorter in its own form goes so."""
    values: list[Sent] = []
    formats: list[int] = []
    for value in params:
        kind = type(value)
        if kind is UUID:
            values.append(value.bytes)
            formats.append(BINARY)
        elif kind is bytes:
            values.append(value)
            formats.append(BINARY)
        else:
            values.append(None if value is None else as_text(value))
            formats.append(TEXT)
    return Ready(values, formats)


def as_text(value: Any) -> bytes:
    """An enumeration's member is its value."""
    written = value if isinstance(value, str) else _written(value)
    if "\0" in written:  # the protocol's text ends there
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return written.encode()


def _written(value: Any) -> str:
    match value:
        case Enum():
            written = str(value.value)
        case bool():
            written = "t" if value else "f"
        case datetime():
            written = value.isoformat()
        case list() | tuple():
            written = "{" + ",".join(map(_element, value)) + "}"
        case int() | UUID():
            written = str(value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be sent")
    return written


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    written = str.__str__(value) if isinstance(value, str) else _written(value)
    return '"' + written.replace("\\", "\\\\").replace('"', '\\"') + '"'
