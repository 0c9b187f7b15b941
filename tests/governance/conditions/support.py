"""Shared by the condition tests: one scope, a naive second interpreter, generators of trees and contexts."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from governance.conditions import EvaluationScope, compile_condition
from governance.conditions.ast import (
    Arithmetic,
    ArrayLiteral,
    BooleanLiteral,
    Comparison,
    Expression,
    HelperCall,
    Logical,
    Minus,
    Negation,
    NumberLiteral,
    Path,
    StringLiteral,
)

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
SCOPE = EvaluationScope(now=NOW, case_id="case-1", definition_id="def-1")


def evaluate(source: str, context: Mapping[str, Any] | None = None, *, scope: EvaluationScope = SCOPE) -> bool:
    return compile_condition(source).evaluate(context or {}, scope=scope)


# --- a second interpreter, written from the reference page and sharing no code with the first ---


class Refusal(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Absent:
    pass


def reference(node: Expression, context: Mapping[str, Any], *, absence_allowed: bool = False) -> Any:
    result: Any
    match node:
        case Path(segments):
            result = _reference_path(segments, context)
            if isinstance(result, Absent) and not absence_allowed:
                raise Refusal("condition_missing_path")
        case HelperCall(helper, arguments):
            result = _reference_call(helper, arguments, context, absence_allowed=absence_allowed)
        case Comparison(operator, left, right):
            compare = _reference_in if operator == "in" else _reference_compare
            result = compare(operator, reference(left, context), reference(right, context))
        case Logical(connective, operands):
            fold = all if connective == "&&" else any
            result = fold(_reference_boolean(reference(item, context)) for item in operands)
        case Arithmetic() | Minus():
            result = _reference_number(node, context)
        case Negation(operand):
            result = not _reference_boolean(reference(operand, context))
        case ArrayLiteral(items):
            result = [reference(item, context) for item in items]
        case NumberLiteral(value) | StringLiteral(value) | BooleanLiteral(value):
            result = value
    return result


def reference_outcome(node: Expression, context: Mapping[str, Any]) -> bool | str:
    """The answer, or the code of the refusal."""
    try:
        return _reference_boolean(reference(node, context))
    except Refusal as refusal:
        return refusal.code


def _reference_number(node: Arithmetic | Minus, context: Mapping[str, Any]) -> Any:
    """By a fold over pairs, and with the remainder by its definition."""
    if isinstance(node, Minus):
        return 0 - _reference_operand(node.operand, context)
    result = _reference_operand(node.operands[0], context)
    for symbol, operand in zip(node.operators, node.operands[1:], strict=True):
        value = _reference_operand(operand, context)
        if symbol in "/%" and value == 0:
            raise Refusal("condition_number")
        match symbol:
            case "+":
                result = result + value
            case "-":
                result = result + -value
            case "*":
                result = result * value
            case "/":
                result = result / value
            case "%":
                result = divmod(result, value)[1]
        _reference_range(result)
    return result


def _reference_operand(node: Expression, context: Mapping[str, Any]) -> Any:
    value = reference(node, context)
    if _reference_kind(value) != "number":
        raise Refusal("condition_type")
    _reference_range(value)
    return value


def _reference_range(value: int | float) -> None:
    if value != value or (abs(value) >= 2**53 if isinstance(value, int) else abs(value) == float("inf")):
        raise Refusal("condition_number")


def _reference_path(segments: tuple[str, ...], context: Any) -> Any:
    value = context
    for segment in segments:
        if value is None:
            return Absent()
        if not isinstance(value, dict):
            raise Refusal("condition_type")
        if segment not in value:
            return Absent()
        value = value[segment]
    return value


def _reference_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refusal("condition_type")
    return value


def _reference_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__


def _reference_compare(operator: str, left: Any, right: Any) -> bool:
    kinds = {_reference_kind(left), _reference_kind(right)}
    if kinds == {"datetime", "str"}:
        try:
            left, right = (datetime.fromisoformat(x) if isinstance(x, str) else x for x in (left, right))
            if left.tzinfo is None or right.tzinfo is None:
                raise ValueError
        except ValueError:
            raise Refusal("condition_time") from None
        kinds = {"datetime"}
    allowed = {"number", "str", "datetime"} | ({"boolean"} if operator in ("==", "!=") else set())
    if len(kinds) != 1 or not kinds <= allowed:
        raise Refusal("condition_type")
    less, equal = bool(left < right), bool(left == right)
    return {
        "<": less,
        "<=": less or equal,
        "==": equal,
        "!=": not equal,
        ">=": not less,
        ">": not (less or equal),
    }[operator]


def _reference_in(_: str, value: Any, items: Any) -> bool:
    if not isinstance(items, list) or _reference_kind(value) not in ("boolean", "number", "str"):
        raise Refusal("condition_type")
    if any(_reference_kind(item) != _reference_kind(value) for item in items):
        raise Refusal("condition_type")
    return any(bool(item == value) for item in items)


def _reference_call(helper: str, arguments: Any, context: Any, *, absence_allowed: bool) -> Any:
    if helper == "now":
        return NOW
    if helper == "coalesce":
        value = reference(arguments[0], context, absence_allowed=True)
        if value is None or isinstance(value, Absent):
            return reference(arguments[1], context, absence_allowed=absence_allowed)
        return value
    value = reference(arguments[0], context)
    if helper == "len":
        if not isinstance(value, str | list):
            raise Refusal("condition_type")
        return len(value)
    if _reference_kind(value) != "number":
        raise Refusal("condition_type")
    if not 0 <= value <= 1:
        raise Refusal("condition_limit")
    text = b"holdpoint-sample-v1\ndef-1\ncase-1"
    if len(arguments) == 2:
        text = b"holdpoint-sample-v2\ndef-1\ncase-1\n" + arguments[1].value.encode()
    digest = hashlib.sha256(text).hexdigest()
    return Fraction(int(digest[:16], 16), 2**64) < Fraction(value)


# --- generators ---

NAMES = ("a", "b", "c")
TIMESTAMPS = (
    "2026-05-04T12:00:00Z",
    "2026-05-04T14:00:00+02:00",
    "2026-05-04T11:59:59.5Z",
    "2027-01-01T00:00:00Z",
)

numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**53 - 1), 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.5, -0.0, 1e-7, 1e22]),
)
strings = st.one_of(st.text(max_size=8), st.sampled_from(["", "x", "eu", '"', "\\", "\n\t", *TIMESTAMPS]))
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: Path(tuple(names)))
leaves = st.one_of(
    numbers.map(NumberLiteral),
    strings.map(StringLiteral),
    st.booleans().map(BooleanLiteral),
    paths,
    paths,
    st.just(HelperCall("now", ())),
)
shares = st.one_of(st.sampled_from([0, 0.1, 0.5, 0.9, 1]).map(NumberLiteral), paths)


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Comparison, st.sampled_from(["<", "<=", "==", "!=", ">=", ">", "in"]), inner, inner),
        st.builds(Logical, st.sampled_from(["&&", "||"]), several),
        inner.map(Negation),
        st.lists(inner, max_size=4).map(lambda items: ArrayLiteral(tuple(items))),
        inner.map(lambda item: HelperCall("len", (item,))),
        shares.map(lambda item: HelperCall("sample", (item,))),
        st.tuples(inner, inner).map(lambda pair: HelperCall("coalesce", pair)),
    )


expressions: st.SearchStrategy[Expression] = st.recursive(leaves, _branches, max_leaves=12)

# Mostly well typed, so that answers (and not only refusals) are compared with the second interpreter.
_flags = st.one_of(
    st.booleans().map(BooleanLiteral),
    paths,
    paths.map(lambda path: HelperCall("coalesce", (path, BooleanLiteral(False)))),
    shares.map(lambda item: HelperCall("sample", (item,))),
    st.builds(
        Comparison,
        st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]),
        paths.map(lambda path: HelperCall("coalesce", (path, NumberLiteral(1)))),
        numbers.map(NumberLiteral),
    ),
    st.builds(
        Comparison,
        st.sampled_from(["<", "=="]),
        st.just(HelperCall("now", ())),
        st.sampled_from(TIMESTAMPS).map(StringLiteral),
    ),
)


def _boolean_branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.one_of(st.builds(Logical, st.sampled_from(["&&", "||"]), several), inner.map(Negation))


boolean_expressions: st.SearchStrategy[Expression] = st.recursive(_flags, _boolean_branches, max_leaves=10)


# --- the extended dialect ---


def _sums(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def several(symbols: str) -> st.SearchStrategy[Expression]:
        return st.lists(inner, min_size=2, max_size=4).flatmap(
            lambda items: st.tuples(*[st.sampled_from(symbols)] * (len(items) - 1)).map(
                lambda chosen: Arithmetic(chosen, tuple(items))
            )
        )

    # A minus before a literal is part of the literal.
    return st.one_of(
        several("+-"), several("*/%"), inner.filter(lambda item: not isinstance(item, NumberLiteral)).map(Minus)
    )


salted = st.builds(
    lambda share, salt: HelperCall("sample", (share, StringLiteral(salt))),
    shares,
    st.sampled_from(["a", "second look"]),
)
extended_expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(leaves, numbers.map(NumberLiteral), salted),
    lambda inner: st.one_of(_branches(inner), _sums(inner)),
    max_leaves=12,
)
_quantities = st.one_of(
    st.integers(-9, 9).map(NumberLiteral),
    numbers.map(NumberLiteral),
    paths.map(lambda path: HelperCall("coalesce", (path, NumberLiteral(2)))),
)
# Mostly numbers, so that results and not only refusals are compared.
calculations: st.SearchStrategy[Expression] = st.recursive(_quantities, _sums, max_leaves=8)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.booleans(), numbers, strings),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=8,
)
contexts = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=3)
