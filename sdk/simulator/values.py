"""A value that satisfies a JSON Schema of the kind that modules register. Pure: the same dice give the same value."""

import re
from collections.abc import Mapping
from random import Random
from typing import Any
from uuid import UUID

# Of the span of a number: simulated modules answer near its lower end, or near its upper one.
SHARE = 0.15
LONGEST = 24
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "email": "module@example.com",
    "uri": "https://module.example/1",
}


def satisfying(schema: Mapping[str, Any], dice: Random, *, high: bool = False) -> Any:
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return dice.choice(schema["enum"])
    named = schema.get("type", "object" if "properties" in schema else "string")
    kind = named[0] if isinstance(named, list) else named
    if kind in {"object", "array"}:
        return _several(schema, dice, high=high)
    if kind in {"integer", "number"}:
        return _number(schema, dice, whole=kind == "integer", high=high)
    return {"boolean": high, "null": None}.get(kind) if kind in {"boolean", "null"} else _text(schema, dice)


def _several(schema: Mapping[str, Any], dice: Random, *, high: bool) -> Any:
    parts = schema.get("properties", {})
    if "items" in schema or schema.get("type") == "array":
        return [satisfying(schema.get("items", {}), dice, high=high) for _ in range(schema.get("minItems", 1))]
    return {name: satisfying(parts[name], dice, high=high) for name in parts}


def _number(schema: Mapping[str, Any], dice: Random, *, whole: bool, high: bool) -> int | float:
    step = schema.get("multipleOf", 1 if whole else 0)
    least = schema.get("minimum", schema.get("exclusiveMinimum", min(0, schema.get("maximum", 0))))
    most = schema.get("maximum", schema.get("exclusiveMaximum", least + 100))
    share = dice.uniform(0, SHARE)
    value = most - (most - least) * share if high else least + (most - least) * share
    if step:
        value = round(value / step) * step
        value = value + step if value < least or value == schema.get("exclusiveMinimum") else value
        value = value - step if value > most or value == schema.get("exclusiveMaximum") else value
    return int(value) if whole else round(float(value), 4)


def _text(schema: Mapping[str, Any], dice: Random) -> str:
    if schema.get("format") == "uuid":
        return str(UUID(int=dice.getrandbits(128), version=4))
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if "pattern" in schema:
        return _matching(schema["pattern"], dice)
    least, most = schema.get("minLength", 1), schema.get("maxLength", LONGEST)
    length = max(least, min(most, LONGEST))
    return "".join(dice.choice(ALPHABET) for _ in range(length))


def _matching(pattern: str, dice: Random) -> str:
    """Of plain patterns: letters, classes, groups, choices and repetitions."""
    return "".join(_drawn(item, dice) for item in re._parser.parse(pattern))  # type: ignore[attr-defined]


def _drawn(item: Any, dice: Random) -> str:
    name, argument = str(item[0]), item[1]
    if name == "LITERAL":
        return chr(argument)
    if name == "IN":
        return chr(dice.choice(_members(argument)))
    if name in {"MAX_REPEAT", "MIN_REPEAT"}:
        least, most, inner = argument
        return "".join(_drawn(one, dice) for _ in range(max(int(least), min(1, int(most)))) for one in inner)
    if name == "SUBPATTERN":
        return "".join(_drawn(one, dice) for one in argument[-1])
    if name == "BRANCH":
        return "".join(_drawn(one, dice) for one in dice.choice(argument[1]))
    return "a" if name in {"ANY", "NOT_LITERAL"} else ""


def _members(argument: Any) -> list[int]:
    found: list[int] = []
    for kind, value in argument:
        if str(kind) == "LITERAL":
            found.append(value)
        elif str(kind) == "RANGE":
            found += range(value[0], value[1] + 1)
        elif str(kind) == "CATEGORY":
            found += [ord(one) for one in ("0123456789" if "DIGIT" in str(value) else "a")]
        elif str(kind) == "NEGATE":
            left = [ord(one) for one in ALPHABET if not any(_holds(part, ord(one)) for part in argument[1:])]
            return left or [ord("~")]
    return found


def _holds(part: Any, code: int) -> bool:
    kind, value = str(part[0]), part[1]
    return value == code if kind == "LITERAL" else kind == "RANGE" and value[0] <= code <= value[1]
