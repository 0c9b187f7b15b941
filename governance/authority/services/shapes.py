"""Reads the `details` of a proposal: each value by name, with its type and bounds. A wrong one is refused by pointer,
never by value."""

import re
from collections.abc import Mapping
from typing import Any

from reasoncodes.base.errors import FieldError, InvalidInput


def _wrong(pointer: str, message: str) -> InvalidInput:
    return InvalidInput(errors=[FieldError(pointer, message)])


def only(details: Mapping[str, Any], *known: str) -> None:
    """A mistyped name must not be dropped quietly."""
    if set(details) - set(known):
        raise _wrong("/details", "the known fields are: " + (", ".join(known) or "none"))


def text_of(details: Mapping[str, Any], name: str, *, longest: int, required: bool = True) -> str:
    value = details.get(name, "")
    if not isinstance(value, str) or len(value) > longest or (required and not value):
        raise _wrong(f"/details/{name}", f"is a text of up to {longest} characters")
    return value


def texts_of(details: Mapping[str, Any], name: str) -> list[str]:
    value = details.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(f"/details/{name}", "is a list of texts")
    return list(value)


def flag_of(details: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = details.get(name, default)
    if not isinstance(value, bool):
        raise _wrong(f"/details/{name}", "is true or false")
    return value


def whole_of(details: Mapping[str, Any], name: str, *, least: int, most: int, default: int | None) -> int | None:
    value = details.get(name, default)
    if value is None and default is None:
        return None
    # In Python True is an integer.
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise _wrong(f"/details/{name}", f"is a whole number from {least} to {most}")
    return value


def choice_of(value: str, pointer: str, *, pattern: str) -> str:
    if not re.fullmatch(pattern, value):
        raise _wrong(pointer, "has the wrong form: lower-case letters, digits and dashes")
    return value
