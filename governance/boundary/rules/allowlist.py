"""Checks that a JSON Schema is an allow-list: every object closed, every string bounded, nothing that accepts
everything."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from governance.boundary.rules.editions import FIRST
from governance.boundary.rules.keys import key_facts

MAX_STRING_LENGTH: Final = 512
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Formats that the validator really checks. It ignores others, and a string with such a format would be unbounded.
FORMATS: Final = frozenset(
    ["date", "date-time", "time", "duration", "uuid", "uri", "uri-reference", "ipv4", "ipv6", "hostname"]
)
# These change what a reference points to. With them, this check could read another schema than the validator uses.
_REFUSED = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$vocabulary")
_SCALARS = frozenset(["integer", "number", "boolean", "null"])


def allow_list_problems(schema: Mapping[str, Any], *, keys_checked: bool = True) -> list[str]:
    """What keeps the schema from being an allow-list. `keys_checked` is false if the contract has switched off the
    built-in forbidden keys."""
    if schema.get("$schema", DIALECT) != DIALECT:
        return ["schema: only JSON Schema 2020-12 is supported"]
    if schema.get("type") != "object":
        return ["schema: the root must have type object"]
    return list(_Walk(schema, keys_checked).problems(schema, "", frozenset()))


class _Walk:
    def __init__(self, root: Mapping[str, Any], keys_checked: bool) -> None:
        self.root = root
        self.keys_checked = keys_checked

    def problems(self, schema: Any, at: str, seen: frozenset[str]) -> Iterator[str]:
        """Empty if everything that this schema accepts is bounded."""
        # Keywords of a schema only narrow each other, so one bounding keyword at each place is enough.
        where = f"schema{at}"
        if schema is False:
            return
        if not isinstance(schema, Mapping):
            yield f"{where}: accepts anything"
            return
        yield from (f"{where}: {name} is not supported" for name in _REFUSED if name in schema)
        if "enum" in schema or "const" in schema:
            return
        if "$ref" in schema:
            yield from self._reference(schema["$ref"], where, seen)
        elif "type" in schema:
            yield from self._typed(schema, at, seen)
        else:
            yield from self._branches(schema, at, seen)

    def _reference(self, target: str, where: str, seen: frozenset[str]) -> Iterator[str]:
        if not target.startswith("#/$defs/") or target.count("/") != 2:
            yield f"{where}: $ref must point to #/$defs/<name>"
        elif target not in seen:  # a schema may refer to itself; without `seen` this would not end
            name = target.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
            yield from self.problems(self.root.get("$defs", {}).get(name), f"/$defs/{name}", seen | {target})

    def _branches(self, schema: Mapping[str, Any], at: str, seen: frozenset[str]) -> Iterator[str]:
        for keyword in ("anyOf", "oneOf"):
            if schema.get(keyword):
                for index, branch in enumerate(schema[keyword]):
                    yield from self.problems(branch, f"{at}/{keyword}/{index}", seen)
                return
        yield f"schema{at}: accepts anything (say type, enum, const, anyOf, oneOf or $ref)"

    def _typed(self, schema: Mapping[str, Any], at: str, seen: frozenset[str]) -> Iterator[str]:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        for name in types:
            if name == "object":
                yield from self._object(schema, at, seen)
            elif name == "array":
                yield from self._array(schema, at, seen)
            elif name == "string":
                yield from _string(schema, f"schema{at}")
            elif name not in _SCALARS:
                yield f"schema{at}: unknown type"

    def _object(self, schema: Mapping[str, Any], at: str, seen: frozenset[str]) -> Iterator[str]:
        if schema.get("additionalProperties") is not False:
            yield f"schema{at}: an object needs additionalProperties: false"
        if "patternProperties" in schema:
            yield f"schema{at}: patternProperties lists no names; name the properties"
        for name, value in schema.get("properties", {}).items():
            # By the first edition for ever: the document of an open contract must not become unusable.
            if self.keys_checked and key_facts(name, FIRST).forbidden:
                yield f"schema{at}/properties/{name}: a forbidden key can never be accepted"
            yield from self.problems(value, f"{at}/properties/{name}", seen)

    def _array(self, schema: Mapping[str, Any], at: str, seen: frozenset[str]) -> Iterator[str]:
        for index, value in enumerate(schema.get("prefixItems", [])):
            yield from self.problems(value, f"{at}/prefixItems/{index}", seen)
        if "items" not in schema:
            yield f"schema{at}: an array needs items"
        else:
            yield from self.problems(schema["items"], f"{at}/items", seen)


def _string(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if "maxLength" in schema:
        if schema["maxLength"] > MAX_STRING_LENGTH:
            yield f"{where}: maxLength over {MAX_STRING_LENGTH} invites free text"
    elif "format" in schema:
        if schema["format"] not in FORMATS:
            yield f"{where}: format is not one that is checked; add maxLength"
    elif "pattern" in schema:
        if not (schema["pattern"].startswith("^") and schema["pattern"].endswith("$")):
            yield f"{where}: pattern must be anchored with ^ and $"
    else:
        yield f"{where}: a string needs maxLength, enum, const, format or pattern"
