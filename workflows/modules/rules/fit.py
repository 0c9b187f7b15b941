"""Whether one schema admits everything that another one does, and whether what a step sends can fit an operation.

Only keywords that a registered module may use. In doubt the answer is no: the person who publishes then writes the
schema as the operation has it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from governance.boundary.rules.schema import compile_schema
from workflows.kinds.base import Json
from workflows.modules.rules.terms import closed_schema

# (keyword, whether a smaller value admits more): `minimum` 0 admits more than `minimum` 1.
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_SAME = ("pattern", "format", "multipleOf", "uniqueItems")
Misfit = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OfferedModule:
    """A module as a definition sees it: its newest version."""

    slug: str
    version: int
    transport: str
    operations: Mapping[str, Any]


def returns_misfits(*, declared: Json, expected: Json) -> list[Misfit]:
    """Pointers into the step's `returns`, where the operation may return what the step does not admit."""
    return list(dict.fromkeys(_narrower(closed_schema(declared), closed_schema(expected), "")))


def _narrower(given: Any, wanted: Any, at: str) -> Iterator[Misfit]:
    """Where a value that fits `given` may not fit `wanted`."""
    if not isinstance(given, dict) or not isinstance(wanted, dict):
        yield at, "is not a schema"
        return
    yield from _values_narrower(given, wanted, at)
    for keyword, words in _limits_narrower(given, wanted):
        yield f"{at}/{keyword}", words
    yield from _fields_narrower(given, wanted, at)
    if "items" in wanted and _may_be(given, "array"):
        yield from _narrower(given.get("items", {}), wanted["items"], f"{at}/items")


def _types(schema: Json) -> set[str]:
    found = schema.get("type")
    if found is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        return {_type_of(value) for value in values} if values is not None else set()
    return set(found if isinstance(found, list) else [found])


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _may_be(schema: Json, name: str) -> bool:
    return not _types(schema) or name in _types(schema)


def _values_narrower(given: Json, wanted: Json, at: str) -> Iterator[Misfit]:
    listed = _listed(given)
    allowed = _listed(wanted)
    if allowed is not None:
        if listed is None or not _texts(listed) <= _texts(allowed):
            yield f"{at}/enum", "admits fewer values than the operation may return"
    elif listed is not None:
        return  # every value is listed: its type is judged with them
    if "type" in wanted and allowed is None:
        types, admitted = _types(given), _types(wanted)
        admitted |= {"integer"} if "number" in admitted else set()
        if not types or not types <= admitted:
            yield f"{at}/type", "is another type than the operation returns"


def _listed(schema: Json) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    found = schema.get("enum")
    return found if isinstance(found, list) else None


def _texts(values: list[Any]) -> set[str]:
    # As text: in Python True equals 1, and lists cannot be in a set.
    return {json.dumps(value, sort_keys=True) for value in values}


def _limits_narrower(given: Json, wanted: Json) -> Iterator[Misfit]:
    listed = _listed(given)
    if listed is not None:
        if not all(compile_schema({k: v for k, v in wanted.items() if k != "type"}).is_valid(one) for one in listed):
            yield "enum", "admits fewer values than the operation may return"
        return
    for keyword in _LOWER:
        if keyword in wanted and not (keyword in given and given[keyword] >= wanted[keyword]):
            yield keyword, "admits less than the operation may return"
    for keyword in _UPPER:
        if keyword in wanted and not (keyword in given and given[keyword] <= wanted[keyword]):
            yield keyword, "admits less than the operation may return"
    for keyword in _SAME:
        if keyword in wanted and given.get(keyword) != wanted[keyword]:
            yield keyword, "is not what the operation promises"


def _fields_narrower(given: Json, wanted: Json, at: str) -> Iterator[Misfit]:
    if "properties" not in wanted or not _may_be(given, "object"):
        return
    promised, known = given.get("properties", {}), wanted["properties"]
    for name in sorted(set(wanted.get("required", ())) - set(given.get("required", ()))):
        yield f"{at}/required", f"asks for '{name}', which the operation may leave out"
    for name in sorted(promised):
        if name in known:
            yield from _narrower(promised[name], known[name], f"{at}/properties/{name}")
        elif wanted.get("additionalProperties", True) is False:
            yield f"{at}/properties", f"lacks '{name}', which the operation may return"


def send_misfits(*, template: Any, accepted: Json) -> list[Misfit]:
    """Pointers into the step's `send`: fields that the operation does not know or needs, and fixed values that it does
    not accept. What an expression gives is judged when it is filled in."""
    return list(_sent(template, closed_schema(accepted), ""))


def _sent(template: Any, schema: Json, at: str) -> Iterator[Misfit]:
    if _is_expression(template):
        return
    if isinstance(template, dict):
        yield from _sent_object(template, schema, at)
    elif isinstance(template, list):
        if not _may_be(schema, "array"):
            yield at, "is a list, which the operation does not take here"
        for number, one in enumerate(template):
            yield from _sent(one, schema.get("items", {}), f"{at}/{number}")
    elif "{{" not in str(template) and not compile_schema(schema).is_valid(template):
        yield at, "is no value that the operation takes here"


def _sent_object(template: Json, schema: Json, at: str) -> Iterator[Misfit]:
    if not _may_be(schema, "object"):
        yield at, "is an object, which the operation does not take here"
        return
    known = schema.get("properties", {})
    for name in sorted(set(schema.get("required", ())) - set(template)):
        yield at, f"lacks '{name}', which the operation needs"
    for name, part in template.items():
        if name in known:
            yield from _sent(part, known[name], f"{at}/{name}")
        elif schema.get("additionalProperties", True) is False:
            yield at, "has a field that the operation does not know; it takes: " + (", ".join(sorted(known)) or "none")


def _is_expression(template: Any) -> bool:
    """The whole text is one expression, whose value may have any type."""
    if not isinstance(template, str) or not (template.startswith("{{") and template.endswith("}}")):
        return False
    return "{{" not in template[2:]
