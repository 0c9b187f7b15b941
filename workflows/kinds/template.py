"""Templates: an object whose texts are plain, or hold a place for a value of the context.

Format 1: a text is a reference or "{{step.field}}". Format 2: places are expressions, also inside a longer text.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from governance.conditions import (
    ConditionLimitError,
    ConditionSyntaxError,
    ConditionTypeError,
    EvaluationScope,
    compile_expression,
)
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


# --- format 2 ---

# Braces mean nothing in the language, so outside a string they can only begin or end a place.
_EXPRESSION = re.compile(r"""\{\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^"'{}])*)\}\}""")
_MARK = re.compile(r"\{\{|\}\}")
_FIELD_NAME: Json = {
    "type": "string",
    "pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,63}$",
    "description": "a name: up to 64 letters, digits, dots, hyphens and underscores, no digit first",
}
MAX_TEMPLATE_CHARACTERS = 2_000
MAX_FILLED_CHARACTERS = 1_024


def _part(depth: int) -> Json:
    """Part of a template, with objects and lists this deep in each other."""
    part: Json = {"type": ["string", "number", "boolean", "null"], "maxLength": MAX_TEMPLATE_CHARACTERS}
    if depth:
        inner = _part(depth - 1)
        part["type"] += ["array", "object"]
        part |= {"items": inner, "maxItems": 50}
        part |= {"propertyNames": _FIELD_NAME, "maxProperties": 50, "additionalProperties": inner}
    return part


# The params schema of a template of format 2.
OPEN_TEMPLATE: Json = _part(4) | {"type": "object", "propertyNames": CODE}


def fill_template(template: Any, context: Mapping[str, Any], scope: EvaluationScope) -> Any:
    """A template of format 2 with its expressions evaluated. A text that is one expression keeps the kind of its value;
    in a longer text the value becomes text. Raises a ConditionError, also for a missing value."""
    if isinstance(template, dict):
        return {key: fill_template(value, context, scope) for key, value in template.items()}
    if isinstance(template, list):
        return [fill_template(value, context, scope) for value in template]
    return _text_filled(template, context, scope) if isinstance(template, str) else template


def expressions(template: Any) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    """(where in the template, source, whether it is the whole text) of every expression of format 2. Raises a
    ConditionError for a text with a place that is not closed, or that is too long."""
    if isinstance(template, str):
        parts = template_parts(template)
        for index, part in enumerate(parts):
            if index % 2:
                yield (), part, is_whole(parts)
    elif isinstance(template, dict | list):
        items = template.items() if isinstance(template, dict) else enumerate(template)
        for key, value in items:
            for where, source, whole in expressions(value):
                yield (key, *where), source, whole


def template_parts(text: str) -> list[str]:
    """Plain text and source in turns: "a {{b}} c" gives "a ", "b" and " c"."""
    if len(text) > MAX_TEMPLATE_CHARACTERS:
        raise ConditionLimitError(f"a text of a template may have at most {MAX_TEMPLATE_CHARACTERS} characters")
    parts = _EXPRESSION.split(text)
    if any(_MARK.search(plain) for plain in parts[::2]):
        raise ConditionSyntaxError("'{{' and '}}' stand around an expression, in pairs")
    return parts


def is_whole(parts: list[str]) -> bool:
    return len(parts) == 3 and not parts[0] and not parts[2]


def _text_filled(text: str, context: Mapping[str, Any], scope: EvaluationScope) -> Any:
    parts = template_parts(text)
    if is_whole(parts):
        return compile_expression(parts[1]).value(context, scope=scope)
    filled = "".join(
        _as_text(compile_expression(part).value(context, scope=scope)) if index % 2 else part
        for index, part in enumerate(parts)
    )
    if len(filled) > MAX_FILLED_CHARACTERS:
        raise ConditionLimitError(f"a filled text may have at most {MAX_FILLED_CHARACTERS} characters")
    return filled


def _as_text(value: Any) -> str:
    """As people write it: no exponent, and no decimals that are zero."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        plain = f"{Decimal(repr(value or 0)):f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    raise ConditionTypeError("inside a text only a text, a number or a boolean can stand; give it a field of its own")
