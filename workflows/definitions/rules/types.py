"""Finds conditions that would always fail. The output schemas give the types of values, so a comparison of a number
with a text, or with a word that an output never has, is found before publishing."""

from collections.abc import Callable, Iterator
from typing import Any

from governance.conditions import ast
from governance.conditions.values import (
    ARRAY,
    BOOLEAN,
    EQUATABLE_KINDS,
    INSTANT,
    KIND_OF,
    NULL,
    NUMBER,
    OBJECT,
    ORDERED_KINDS,
    SCALAR_KINDS,
    STRING,
)
from workflows.definitions.rules.findings import did_you_mean, nearest
from workflows.definitions.rules.paths import PathProblem
from workflows.kinds.base import Json

Kinds = frozenset[str]
SchemaOf = Callable[[tuple[str, ...]], Json | None]
_ANY: Kinds = frozenset(KIND_OF.values())
_JSON_TYPES = {
    "integer": NUMBER,
    "number": NUMBER,
    "string": STRING,
    "boolean": BOOLEAN,
    "array": ARRAY,
    "object": OBJECT,
    "null": NULL,
}
_NUMBERS, _BOOLEANS, _ARRAYS = frozenset({NUMBER}), frozenset({BOOLEAN}), frozenset({ARRAY})


def type_problems(expression: ast.Expression, schema_of: SchemaOf) -> Iterator[PathProblem]:
    """Only what fails on every context; `schema_of` gives the schema of a path, or nothing if that is not known."""
    yield from _expected(expression, _BOOLEANS, "A condition", schema_of)
    for node, _ in ast.walk(expression):
        if isinstance(node, ast.Comparison):
            yield from _compared(node, schema_of)
        elif isinstance(node, ast.Logical):
            for operand in node.operands:
                yield from _expected(operand, _BOOLEANS, f"Each side of {node.connective}", schema_of)
        elif isinstance(node, ast.Negation):
            yield from _expected(node.operand, _BOOLEANS, "What ! negates", schema_of)
        elif isinstance(node, ast.HelperCall) and node.helper == "len":
            yield from _expected(node.arguments[0], _ARRAYS | {STRING}, "What len counts", schema_of)
        elif isinstance(node, ast.HelperCall) and node.helper == "sample":
            yield from _expected(node.arguments[0], _NUMBERS, "What sample takes", schema_of)


def _kinds(node: ast.Expression, schema_of: SchemaOf) -> Kinds:
    if isinstance(node, ast.Path):
        return _of_schema(schema_of(node.segments))
    if isinstance(node, ast.SCALAR_LITERALS):
        return frozenset({KIND_OF[type(node.value)]})
    if isinstance(node, ast.ArrayLiteral):
        return _ARRAYS
    if isinstance(node, ast.HelperCall) and node.helper == "coalesce":
        return _kinds(node.arguments[0], schema_of) - {NULL} | _kinds(node.arguments[1], schema_of)
    if isinstance(node, ast.HelperCall) and node.helper == "now":
        return frozenset({INSTANT})
    return _NUMBERS if isinstance(node, ast.HelperCall) and node.helper == "len" else _BOOLEANS


def _of_schema(schema: Json | None) -> Kinds:
    if schema is None:
        return _ANY
    if "enum" in schema:
        return frozenset(KIND_OF.get(type(value), OBJECT) for value in schema["enum"])
    types = schema.get("type", list(_JSON_TYPES))
    return frozenset(_JSON_TYPES[name] for name in (types if isinstance(types, list) else [types]))


def _items(node: ast.Expression, schema_of: SchemaOf) -> Kinds:
    """The kinds of what an array holds."""
    schema = schema_of(node.segments) if isinstance(node, ast.Path) else None
    if schema is not None and "items" in schema:
        return _of_schema(schema["items"])
    items = node.items if isinstance(node, ast.ArrayLiteral) else ()
    return frozenset[str]().union(*(_kinds(item, schema_of) for item in items)) or _ANY


def _expected(node: ast.Expression, wanted: Kinds, what: str, schema_of: SchemaOf) -> Iterator[PathProblem]:
    kinds = _kinds(node, schema_of)
    if not kinds & wanted:
        yield PathProblem(f"{what} must be {_either(wanted)}, and this is always {_either(kinds)}{_at(node)}.")


def _compared(node: ast.Comparison, schema_of: SchemaOf) -> Iterator[PathProblem]:
    left, right = _kinds(node.left, schema_of), _kinds(node.right, schema_of)
    if node.operator == "in":
        yield from _expected(node.right, _ARRAYS, "What stands right of in", schema_of)
        found = _items(node.right, schema_of)
        if found & SCALAR_KINDS:
            yield from _expected(node.left, found & SCALAR_KINDS, "What in looks for", schema_of)
        else:
            yield PathProblem(f"in looks for numbers, texts and booleans; this list holds {_either(found)}{_at(node)}.")
    else:
        allowed = EQUATABLE_KINDS if node.operator in ("==", "!=") else ORDERED_KINDS
        # An instant is compared with the text of a timestamp.
        shared = (
            (left & right & allowed) or (INSTANT in left and STRING in right) or (STRING in left and INSTANT in right)
        )
        if not shared:
            message = f"'{node.operator}' cannot compare {_either(left)} with {_either(right)}{_at(node)}."
            yield PathProblem(message)
    yield from _impossible_words(node, schema_of)


def _impossible_words(node: ast.Comparison, schema_of: SchemaOf) -> Iterator[PathProblem]:
    """`decision == "overide"`: a word that the output's schema does not list."""
    if node.operator not in ("==", "!=", "in"):
        return
    for side, other in ((node.left, node.right), (node.right, node.left)):
        words = _listed(side, schema_of)
        for literal in _literals(other) if words else ():
            if literal not in words:
                near = nearest(literal, words)
                message = f"The value is one of {', '.join(words)}, never what it is compared with{_at(node)}."
                yield PathProblem(message + did_you_mean(near), near)


def _listed(node: ast.Expression, schema_of: SchemaOf) -> list[str]:
    """All the words that it can be, or nothing if they are not known."""
    if isinstance(node, ast.HelperCall) and node.helper == "coalesce":
        words = _listed(node.arguments[0], schema_of)
        return [*words, *_literals(node.arguments[1])] if words else []
    schema = schema_of(node.segments) if isinstance(node, ast.Path) else None
    values: list[Any] = (schema or {}).get("enum", [])
    return values if all(isinstance(value, str) for value in values) else []


def _literals(node: ast.Expression) -> list[str]:
    items = node.items if isinstance(node, ast.ArrayLiteral) else (node,)
    return [item.value for item in items if isinstance(item, ast.StringLiteral)]


def _either(kinds: Kinds) -> str:
    return " or ".join(sorted(kinds))


def _at(node: ast.Expression) -> str:
    return f" (line {node.position.line}, column {node.position.column})" if node.position else ""
