"""Schemas that an author writes: of a run's input, of what a service or an event returns, of a form. Pure.

Law 6: what is stored is metadata. So every object is closed, every text and list has an end, and nothing is referred to
that is not in the schema itself.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from governance.boundary.rules.keys import key_facts
from governance.boundary.rules.schema import compile_schema
from governance.conditions.limits import MAX_STRING_CHARACTERS
from governance.conditions.vocabulary import PATH_SEGMENT
from workflows.definitions.rules.findings import did_you_mean, nearest
from workflows.kinds.base import Json
from workflows.kinds.shapes import MAX_ITEMS

Place = tuple[str | int, ...]
Problem = tuple[Place, str, str]  # where in the schema, message, suggestion
MAX_FIELDS = 50
# Of objects and lists in each other: deeper than that is content, and the snapshot of a run would not hold it.
MAX_SCHEMA_DEPTH = 4
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_NOTES = ("title", "description", "default", "examples", "$comment", "$schema", "deprecated", "readOnly")
_OF_TYPE = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems"),
    "string": ("maxLength", "minLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_KEYWORDS = ("type", "enum", "const", *_NOTES, *(word for words in _OF_TYPE.values() for word in words))
FORMATS = ("date", "date-time", "time", "duration", "uuid")  # each has an end of its own
_PERSONAL = ("email", "idn-email")
_INNER_CLASS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]")
_ENDLESS = re.compile(r"[*+]|\{\d+,\}|\{,")


def schema_problems(schema: Any) -> Iterator[Problem]:
    """Everything that keeps it from being a closed object of bounded fields."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield (), "A schema here is a JSON Schema of an object: write type object, properties and required.", "object"
        return
    found = list(_problems(schema, (), 1))
    yield from found
    if not found:
        try:
            compile_schema(schema)
        except ValueError:
            yield (), "This is not a JSON Schema that can be used (2020-12). Check its keywords.", ""


def _problems(schema: Any, place: Place, depth: int) -> Iterator[Problem]:
    if not isinstance(schema, dict):
        yield place, "Write a schema here: an object with type, enum or const.", ""
        return
    unknown = [word for word in schema if word not in _KEYWORDS]
    for word in unknown:
        near = nearest(word, _KEYWORDS)
        advice = did_you_mean(near) or " Use type, enum and the limits of a type; there are no references."
        yield (*place, word), f"This keyword is not used in schemas of workflows.{advice}", near
    if unknown:
        return
    if "const" in schema or "enum" in schema:
        yield from _listed(schema, place)
        return
    types = _types(schema)
    if not types:
        yield (*place, "type"), f"Say what this is: a type of {', '.join(_TYPES)}, or enum.", "string"
    if depth > MAX_SCHEMA_DEPTH and types & {"object", "array"}:
        message = f"Objects and lists are nested at most {MAX_SCHEMA_DEPTH} deep here. Flatten it, or keep a reference."
        yield place, message, ""
        return
    for name, rule in _RULES.items():
        if name in types:
            yield from rule(schema, place, depth)


def _types(schema: Json) -> set[str]:
    given = schema.get("type")
    names = given if isinstance(given, list) else [given]
    known = {name for name in names if isinstance(name, str) and name in _TYPES}
    return known if len(known) == len(names) else set()


def _listed(schema: Json, place: Place) -> Iterator[Problem]:
    word = "const" if "const" in schema else "enum"
    values = [schema["const"]] if word == "const" else schema["enum"]
    if not isinstance(values, list) or not values or len(values) > MAX_ITEMS:
        yield (*place, word), f"List 1 to {MAX_ITEMS} values.", ""
    elif not all(_is_short(value) for value in values):
        message = f"Values are numbers, booleans, null or texts of up to {MAX_STRING_CHARACTERS} characters."
        yield (*place, word), message, ""


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_STRING_CHARACTERS
    return value is None or isinstance(value, bool | int | float)


def _object(schema: Json, place: Place, depth: int) -> Iterator[Problem]:
    if schema.get("additionalProperties") is not False:
        yield (*place, "additionalProperties"), "Close the object: write additionalProperties false.", "false"
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        yield (*place, "properties"), "Name the fields of the object: write properties.", ""
        return
    if len(properties) > MAX_FIELDS:
        yield (*place, "properties"), f"An object has at most {MAX_FIELDS} fields here.", ""
        return
    required = schema.get("required", [])
    for index, name in enumerate(required if isinstance(required, list) else []):
        if not isinstance(name, str) or name not in properties:
            near = nearest(name, properties)
            yield (*place, "required", index), f"There is no such field to require.{did_you_mean(near)}", near
    if not isinstance(required, list):
        yield (*place, "required"), "List the names of the fields that must be there.", ""
    for name, field in properties.items():
        here = (*place, "properties", name)
        if len(name) > 64 or not PATH_SEGMENT.fullmatch(name):
            yield (
                here,
                "A field has up to 64 letters, digits and underscores, no digit first, so that it can be read.",
                "",
            )
        elif key_facts(name).forbidden:
            yield (
                here,
                "This names content that records must not hold. Keep it in your own system, and a reference here.",
                "",
            )
        yield from _problems(field, here, depth + 1)


def _array(schema: Json, place: Place, depth: int) -> Iterator[Problem]:
    most = schema.get("maxItems")
    if not _is_count(most) or most > MAX_ITEMS:
        yield (*place, "maxItems"), f"Say how long the list may be: maxItems of at most {MAX_ITEMS}.", str(MAX_ITEMS)
    yield from _problems(schema.get("items"), (*place, "items"), depth + 1)


def _string(schema: Json, place: Place, depth: int) -> Iterator[Problem]:
    most, pattern = schema.get("maxLength"), schema.get("pattern")
    if schema.get("format") in _PERSONAL:
        message = "An address of a person is content. Keep it in your own system, and a reference here."
        yield (*place, "format"), message, "uuid"
    elif most is not None and (not _is_count(most) or most > MAX_STRING_CHARACTERS):
        message = f"A text has at most {MAX_STRING_CHARACTERS} characters here; longer ones are content."
        yield (*place, "maxLength"), message, str(MAX_STRING_CHARACTERS)
    elif most is None and schema.get("format") not in FORMATS and not (isinstance(pattern, str) and has_end(pattern)):
        message = "Say how long the text may be: maxLength, a format, or a pattern from ^ to $ that has an end."
        yield place, message, "maxLength"


def has_end(pattern: str) -> bool:
    """Whether all that it matches is of limited length. Looks for repetitions; in doubt the answer is no."""
    if not (pattern.startswith("^") and pattern.endswith("$")) or pattern.endswith("\\$"):
        return False
    bare = _INNER_CLASS.sub("x", pattern)
    # `^a|b$` is anchored on one side of each half only.
    alone, level = False, 0
    for mark in bare:
        level += {"(": 1, ")": -1}.get(mark, 0)
        alone = alone or (mark == "|" and level == 0)
    return not alone and _ENDLESS.search(bare) is None and len(pattern) <= MAX_STRING_CHARACTERS


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_RULES: dict[str, Callable[[Json, Place, int], Iterator[Problem]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
}
