"""What an expression of format 2 gives, and whether it can be evaluated on every context that the schemas allow. Pure.

Stricter than for format 1: not only what always fails is found, but also what may fail, such as comparing a text that
may be null. So an accepted expression never meets a value of a kind that it does not take.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from governance.conditions import ConditionError, ast
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
    parse_timestamp,
)
from workflows.definitions.rules.findings import did_you_mean, nearest
from workflows.definitions.rules.paths import PathProblem
from workflows.definitions.rules.types import Kinds
from workflows.kinds.base import Json

_JSON_KINDS = {
    "integer": NUMBER,
    "number": NUMBER,
    "string": STRING,
    "boolean": BOOLEAN,
    "array": ARRAY,
    "object": OBJECT,
    "null": NULL,
}
_ALL: Kinds = frozenset(KIND_OF.values())


@dataclass(frozen=True, slots=True)
class Type:
    """`kinds` empty: nothing is known, and nothing is said about it. `words`: all texts that it can be. `schema`: what
    is known of its fields or items."""

    kinds: Kinds = frozenset()
    schema: Json | None = None
    words: tuple[str, ...] = ()
    whole: bool = False  # a number that is always a whole one
    dated: bool = False  # a text that is always a timestamp

    @property
    def is_known(self) -> bool:
        return bool(self.kinds)

    def without_null(self) -> "Type":
        return Type(self.kinds - {NULL}, self.schema, self.words, self.whole, self.dated) if self.kinds else self


UNKNOWN = Type()
TypeOf = Callable[[tuple[str, ...]], Type]


def schema_type(schema: Json | None) -> Type:
    """The type of every value that the schema accepts."""
    if not isinstance(schema, dict):
        return UNKNOWN
    if "const" in schema or "enum" in schema:
        return _values_type([schema["const"]] if "const" in schema else schema["enum"])
    given = schema.get("type")
    names = given if isinstance(given, list) else [given]
    if not names or not all(isinstance(name, str) and name in _JSON_KINDS for name in names):
        return UNKNOWN
    kinds = frozenset(_JSON_KINDS[str(name)] for name in names)
    return Type(
        kinds, schema, whole="number" not in names and "integer" in names, dated=schema.get("format") == "date-time"
    )


def _values_type(values: Any) -> Type:
    if not isinstance(values, list) or not values:
        return UNKNOWN
    kinds = frozenset(KIND_OF.get(type(value), OBJECT) for value in values)
    words = tuple(value for value in values if isinstance(value, str))
    whole = all(type(value) is int for value in values if KIND_OF.get(type(value)) == NUMBER)
    return Type(kinds, None, words if kinds <= {STRING, NULL} else (), whole=whole)


def either(one: Type, other: Type) -> Type:
    """A value of the one or of the other type."""
    if not (one.is_known and other.is_known):
        return UNKNOWN
    words = (*one.words, *other.words) if one.words and other.words else ()
    same = one.schema if one.schema == other.schema or not _has_parts(other) else None
    schema = same if same is not None else (other.schema if not _has_parts(one) else None)
    return Type(one.kinds | other.kinds, schema, words, one.whole and other.whole, one.dated and other.dated)


def _has_parts(kind: Type) -> bool:
    return bool(kind.kinds & {ARRAY, OBJECT})


def item_type(found: Type) -> Type:
    """Of the items of a list."""
    return schema_type((found.schema or {}).get("items")) if ARRAY in found.kinds else UNKNOWN


def infer(node: ast.Expression, type_of: TypeOf) -> Type:
    if isinstance(node, ast.Path):
        return type_of(node.segments)
    if isinstance(node, ast.SCALAR_LITERALS):
        return _values_type([node.value])
    if isinstance(node, ast.ArrayLiteral):
        return _array_type(node, type_of)
    if isinstance(node, ast.Arithmetic | ast.Minus):
        operands = [infer(item, type_of) for item in ast.children(node)]
        divides = isinstance(node, ast.Arithmetic) and "/" in node.operators
        return Type(frozenset({NUMBER}), {"type": "number"}, whole=not divides and all(one.whole for one in operands))
    return _call_type(node, type_of) if isinstance(node, ast.HelperCall) else Type(frozenset({BOOLEAN}))


def _call_type(node: ast.HelperCall, type_of: TypeOf) -> Type:
    if node.helper == "coalesce":
        return either(infer(node.arguments[0], type_of).without_null(), infer(node.arguments[1], type_of))
    if node.helper == "now":
        return Type(frozenset({INSTANT}))
    return Type(frozenset({NUMBER}), whole=True) if node.helper == "len" else Type(frozenset({BOOLEAN}))


def _array_type(node: ast.ArrayLiteral, type_of: TypeOf) -> Type:
    parts = [type_schema(infer(item, type_of)) for item in node.items]
    schema: Json = {"type": "array", "maxItems": len(parts), "minItems": len(parts)}
    if parts and all(part == parts[0] for part in parts) and parts[0] is not None:
        schema["items"] = parts[0]
    elif all(part is not None for part in parts):
        kinds = frozenset[str]().union(*(schema_type(part).kinds for part in parts))
        schema["items"] = {"type": sorted(kinds)}
    return Type(frozenset({ARRAY}), schema)


def type_schema(found: Type) -> Json | None:
    """A schema that accepts all values of the type, as exactly as it is known."""
    if not found.is_known:
        return None
    if _has_parts(found) and found.schema is not None and schema_type(found.schema).kinds == found.kinds:
        return found.schema
    names = {"integer" if kind == NUMBER and found.whole else kind for kind in found.kinds - {INSTANT}}
    names |= {STRING} if INSTANT in found.kinds else set()
    schema: Json = {"type": names.pop() if len(names) == 1 else sorted(names)}
    if found.words:
        schema["enum"] = [*dict.fromkeys(found.words), *([None] if NULL in found.kinds else [])]
    if found.kinds == {INSTANT} or (found.dated and found.kinds <= {STRING, INSTANT}):
        schema["format"] = "date-time"
    return schema


def nesting(schema: Json | None) -> int:
    """How many objects and lists lie in each other in a value of this schema."""
    if not isinstance(schema, dict) or schema_type(schema).kinds.isdisjoint({ARRAY, OBJECT}):
        return 0
    properties = schema.get("properties")
    inner = [*(properties.values() if isinstance(properties, dict) else ()), schema.get("items")]
    return 1 + max((nesting(one) for one in inner if isinstance(one, dict)), default=0)


def evaluation_problems(node: ast.Expression, type_of: TypeOf) -> Iterator[PathProblem]:
    """What can fail because of the kind of a value, in this node and in all inside it."""
    for one, _ in ast.walk(node):
        if isinstance(one, ast.Comparison):
            yield from _compared(one, type_of)
        elif isinstance(one, ast.Logical):
            yield from _each(one.operands, {BOOLEAN}, f"Each side of {one.connective}", type_of)
        elif isinstance(one, ast.Negation):
            yield from _each((one.operand,), {BOOLEAN}, "What ! negates", type_of)
        elif isinstance(one, ast.Minus):
            yield from _each((one.operand,), {NUMBER}, "What - changes the sign of", type_of)
        elif isinstance(one, ast.Arithmetic):
            yield from _each(one.operands, {NUMBER}, f"What {one.operators[0]} calculates with", type_of)
        elif isinstance(one, ast.HelperCall) and one.helper == "len":
            yield from _each(one.arguments, {ARRAY, STRING}, "What len counts", type_of)
        elif isinstance(one, ast.HelperCall) and one.helper == "sample":
            yield from _share(one.arguments[0], type_of)


def expected(node: ast.Expression, wanted: set[str], what: str, type_of: TypeOf) -> Iterator[PathProblem]:
    """Unless it is always of one of these kinds."""
    found = infer(node, type_of)
    if not found.is_known or found.kinds <= wanted:
        return
    if found.kinds - {NULL} <= wanted and found.kinds != {NULL}:
        near = f"coalesce({'.'.join(node.segments)}, …)" if isinstance(node, ast.Path) else ""
        yield PathProblem(f"{what} may be null{_at(node)}. Write coalesce(…, <a default>) around it.", near)
        return
    verb = "may be" if found.kinds & wanted else "is always"
    yield PathProblem(f"{what} must be {_either(wanted)}, and this {verb} {_either(found.kinds - wanted)}{_at(node)}.")


def _each(nodes: tuple[ast.Expression, ...], wanted: set[str], what: str, type_of: TypeOf) -> Iterator[PathProblem]:
    for node in nodes:
        yield from expected(node, wanted, what, type_of)


def _share(node: ast.Expression, type_of: TypeOf) -> Iterator[PathProblem]:
    problems = list(expected(node, {NUMBER}, "What sample takes", type_of))
    yield from problems
    schema = infer(node, type_of).schema
    if problems or not isinstance(node, ast.Path) or schema is None:
        return
    if not _is_share(schema):
        yield PathProblem(f"What sample takes must have a minimum of 0 and a maximum of 1 in its schema{_at(node)}.")


def _is_share(schema: Json) -> bool:
    least, most = schema.get("minimum"), schema.get("maximum")
    return isinstance(least, int | float) and least >= 0 and isinstance(most, int | float) and most <= 1


def _compared(node: ast.Comparison, type_of: TypeOf) -> Iterator[PathProblem]:
    if node.operator == "in":
        yield from _contained(node, type_of)
    else:
        yield from _ordered(node, infer(node.left, type_of), infer(node.right, type_of))
    yield from _impossible_words(node, type_of)


def _ordered(node: ast.Comparison, left: Type, right: Type) -> Iterator[PathProblem]:
    if not (left.is_known and right.is_known):
        return
    allowed = EQUATABLE_KINDS if node.operator in ("==", "!=") else ORDERED_KINDS
    if left.kinds | right.kinds <= {STRING, INSTANT} and INSTANT in left.kinds | right.kinds:
        for side, found in ((node.left, left), (node.right, right)):
            if not is_timestamp(side, found):
                message = f"now() is compared with a timestamp only, and this need not be one{_at(side)}."
                yield PathProblem(f"{message} Give its field the format date-time.")
        return
    if len(left.kinds | right.kinds) == 1 and left.kinds <= allowed:
        return
    if NULL in left.kinds | right.kinds and (left.kinds | right.kinds) - {NULL} <= allowed:
        yield PathProblem(
            f"'{node.operator}' cannot compare null{_at(node)}. Write coalesce(…, <a default>) around what may be null."
        )
        return
    message = f"'{node.operator}' cannot compare {_either(left.kinds)} with {_either(right.kinds)}{_at(node)}."
    yield PathProblem(message)


def is_timestamp(node: ast.Expression, found: Type) -> bool:
    if found.kinds == {INSTANT} or found.dated:
        return True
    if not isinstance(node, ast.StringLiteral):
        return False
    try:
        parse_timestamp(node.value, position=None)
    except ConditionError:
        return False
    return True


def _contained(node: ast.Comparison, type_of: TypeOf) -> Iterator[PathProblem]:
    yield from expected(node.right, {ARRAY}, "What stands right of in", type_of)
    yield from expected(node.left, set(SCALAR_KINDS), "What in looks for", type_of)
    left = infer(node.left, type_of)
    if isinstance(node.right, ast.ArrayLiteral):
        items = [infer(item, type_of) for item in node.right.items]
    else:
        items = [item_type(infer(node.right, type_of))]
    for item in items:
        if left.is_known and item.is_known and not (left.kinds == item.kinds and len(item.kinds) == 1):
            message = f"in looks for {_either(left.kinds)}, and the list may hold {_either(item.kinds)}{_at(node)}."
            yield PathProblem(f"{message} Both must be of the same single kind.")
            return


def _impossible_words(node: ast.Comparison, type_of: TypeOf) -> Iterator[PathProblem]:
    """`task.outcome == "aprove"`: a word that it never is."""
    if node.operator not in ("==", "!=", "in"):
        return
    for side, other in ((node.left, node.right), (node.right, node.left)):
        words = () if isinstance(side, ast.StringLiteral) else infer(side, type_of).words
        items = other.items if isinstance(other, ast.ArrayLiteral) else (other,)
        for literal in [item.value for item in items if isinstance(item, ast.StringLiteral)] if words else ():
            if literal not in words:
                near = nearest(literal, words)
                message = f"The value is one of {', '.join(words[:12])}, never what it is compared with{_at(node)}."
                yield PathProblem(message + did_you_mean(near), near)


def _either(kinds: Kinds | set[str]) -> str:
    return " or ".join(sorted(kinds or _ALL))


def _at(node: ast.Expression) -> str:
    return f" (line {node.position.line}, column {node.position.column})" if node.position else ""
