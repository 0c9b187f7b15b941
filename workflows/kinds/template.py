"""Payload templates: an object whose texts are references, or "{{step.field}}" for a value of the context."""

import re
from collections.abc import Iterator
from typing import Any

from workflows.kinds.base import Json
from workflows.kinds.shapes import CODE

_PLACE = re.compile(r"\{\{ ?([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*) ?\}\}")
_TEXT: Json = {
    "type": ["string", "number", "boolean", "null"],
    "maxLength": 200,
    "description": "a reference without spaces, or {{step.field}}",
    "pattern": r"^(\{\{ ?[A-Za-z_][A-Za-z0-9_.]* ?\}\}|[A-Za-z0-9][A-Za-z0-9._:/-]*)$",
}
_INNER: Json = {"maxProperties": 20, "propertyNames": CODE, "additionalProperties": _TEXT}
_VALUE: Json = {
    **_TEXT,
    **_INNER,
    "type": [*_TEXT["type"], "array", "object"],
    "items": _TEXT,
    "maxItems": 50,
}
TEMPLATE: Json = {**_INNER, "type": "object", "additionalProperties": _VALUE}


def fill(template: Json, context: Json) -> Json:
    """The template with values filled in. A missing value becomes null: a webhook must not stop a workflow."""
    return {key: _filled(value, context) for key, value in template.items()}


def placeholders(template: Any) -> Iterator[tuple[tuple[str | int, ...], tuple[str, ...]]]:
    """(where in the template, path it reads) of every "{{path}}"."""
    if isinstance(template, str):
        place = _PLACE.fullmatch(template)
        if place:
            yield (), tuple(place[1].split("."))
    elif isinstance(template, dict | list):
        items = template.items() if isinstance(template, dict) else enumerate(template)
        for key, value in items:
            for where, path in placeholders(value):
                yield (key, *where), path


def _filled(value: Any, context: Json) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, context) for item in value]
    place = _PLACE.fullmatch(value) if isinstance(value, str) else None
    return _read(place[1].split("."), context) if place else value


def _read(path: list[str], context: Json) -> Any:
    value: Any = context
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value
