"""Checks values against schemas. A problem has a pointer, a rule and advice; a submitted value is never repeated (law
6).

A key appears in a pointer only if the schema knows it or it is a harmless identifier (see
governance.boundary.rules.pointers).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from governance.boundary.rules.pointers import boundary_pointer
from governance.boundary.rules.schema import compile_schema, property_names
from workflows.kinds.base import Json, StepKind

MAX_PROBLEMS = 50
_NOT_JSON = "must be plain JSON: finite numbers, valid text, text keys, no endless nesting"
_KINDS = jsonschema_rs.ValidationErrorKind


@dataclass(frozen=True, slots=True, order=True)
class ShapeProblem:
    pointer: str
    message: str
    rule: str


class Checker:
    """One compiled schema."""

    __slots__ = ("_known", "_schema", "_validator")

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._validator = compile_schema(schema)
        self._known = frozenset(property_names(schema))

    def problems(self, value: Any, *, base: str = "", known: frozenset[str] = frozenset()) -> list[ShapeProblem]:
        """Sorted, so that the order of keys changes nothing; `known` are more names that a pointer may show.
        Never raises, whatever the value is."""
        try:
            if self._validator.is_valid(value):
                return []
            shown = self._known | known
            errors = self._validator.iter_errors(value)
            found = {one for error in errors for one in self._of(error, value, base, shown)}
        except (ValueError, TypeError, RecursionError, OverflowError):
            return [ShapeProblem(base, _NOT_JSON, "json")]
        return sorted(found)[:MAX_PROBLEMS]

    def _of(
        self, error: jsonschema_rs.ValidationError, value: Any, base: str, shown: frozenset[str]
    ) -> Iterator[ShapeProblem]:
        path = tuple(error.instance_path)
        rule, message = _words(error, self._schema)
        for tail in _tails(error.kind):
            pointer = boundary_pointer((*path, *tail), root=value, base=base, known=shown)
            yield ShapeProblem(pointer, message, rule)


_CHECKERS: dict[int, tuple[Json, Checker]] = {}


def checker(schema: Json) -> Checker:
    """Compiled once per schema object. Schemas of kinds and events live as long as the process."""
    cached = _CHECKERS.get(id(schema))
    if cached is None or cached[0] is not schema:
        cached = _CHECKERS[id(schema)] = (schema, Checker(schema))
    return cached[1]


def params_problems(kind: StepKind, params: Any, *, base: str = "") -> list[ShapeProblem]:
    return checker(kind.params_schema).problems(params, base=base)


def output_problems(kind: StepKind, output: Any, *, base: str = "") -> list[ShapeProblem]:
    """Empty: the output may be merged into the context. Else the module's contract drifted."""
    return checker(kind.output_schema).problems(output, base=base)


def _tails(kind: Any) -> list[tuple[str, ...]]:
    if isinstance(kind, _KINDS.AdditionalProperties):
        return [(name,) for name in kind.unexpected]
    if isinstance(kind, _KINDS.Required):
        return [(kind.property,)]
    return [()]


# Keyword of JSON Schema: the rule's name, and what to do. `{}` is the schema's own limit, never a submitted value.
_WORDS = {
    "additionalProperties": ("unknown_field", "is not known here"),
    "propertyNames": ("field_name", "has a field whose name is too long, or not lower case, digits and underscores"),
    "required": ("required", "is required; add it"),
    "type": ("type", "must be of type {}"),
    "enum": ("allowed_value", "must be one of: {}"),
    "const": ("allowed_value", "must be exactly {}"),
    "pattern": ("format", "must match {}"),
    "format": ("format", "must be a {}"),
    "not": ("reserved", "is reserved; choose another"),
    "uniqueItems": ("limit", "must not hold the same twice"),
    "maxLength": ("limit", "must have at most {} characters"),
    "minLength": ("limit", "must have at least {} characters"),
    "maximum": ("limit", "must be at most {}"),
    "minimum": ("limit", "must be at least {}"),
    "maxItems": ("limit", "must have at most {} items"),
    "minItems": ("limit", "must have at least {} items"),
    "maxProperties": ("limit", "must have at most {} fields"),
    "minProperties": ("limit", "must have at least {} fields"),
}


def _words(error: jsonschema_rs.ValidationError, schema: Json) -> tuple[str, str]:
    rule, text = _WORDS.get(error.kind.name, ("shape", "does not have the expected shape"))
    *way, keyword = error.schema_path
    part: Any = schema
    for step in way:
        part = part[step]
    if rule == "format" and "description" in part:
        return rule, f"must be {part['description']}"
    limit = part[keyword]
    return rule, text.format(" or ".join(map(str, limit)) if isinstance(limit, list) else limit)
