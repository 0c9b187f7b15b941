"""Closures for comparisons, `in` and the boolean operators, made from compiled operands."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from governance.conditions.ast import SCALAR_LITERALS, ArrayLiteral, Expression, Operator
from governance.conditions.errors import ConditionTypeError, Position
from governance.conditions.frame import Frame, Run, expect_boolean
from governance.conditions.limits import MAX_STRING_CHARACTERS
from governance.conditions.values import (
    EQUATABLE_KINDS,
    KIND_OF,
    NUMBER,
    ORDERED_KINDS,
    STRING,
    check_array,
    check_needle,
    comparable,
    contains,
    kind_of,
    scan_steps,
)

_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def comparison(symbol: Operator, left: Run, right: Run, *, position: Position | None) -> Run:
    test = _TESTS[symbol]
    kinds = EQUATABLE_KINDS if symbol in ("==", "!=") else ORDERED_KINDS
    kind_get = KIND_OF.get

    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        kind = kind_get(type(one))
        # The two common cases, numbers and short strings, without a call. `comparable` handles the others and refuses.
        if kind is kind_get(type(two)) and (
            kind is NUMBER
            or (kind is STRING and len(one) <= MAX_STRING_CHARACTERS and len(two) <= MAX_STRING_CHARACTERS)
        ):
            return test(one, two)
        one, two = comparable(one, two, kinds=kinds, operator=symbol, position=position)
        return test(one, two)

    return run


def membership(left: Run, right: Run, *, position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        value, items = left(frame), right(frame)
        size = check_array(items, what="'in' needs an array on its right", position=position)
        frame.spend(size * scan_steps(value), position=position)
        return contains(value, items, position=position)

    return run


def constant_set(node: Expression) -> tuple[str, frozenset[Any]] | None:
    """The kind and the values of an array of literals of one kind, which can be looked up instead of scanned."""
    if not isinstance(node, ArrayLiteral):
        return None
    values = [item.value for item in node.items if isinstance(item, SCALAR_LITERALS)]
    kinds = {kind_of(value) for value in values}
    if len(values) != len(node.items) or len(kinds) != 1:
        return None
    return kinds.pop(), frozenset(values)


def constant_membership(left: Run, *, kind: str, values: frozenset[Any], position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        value = left(frame)
        found = check_needle(value, position=position)
        # Checked before the lookup, because in Python `True in {1}` is true.
        if found != kind:
            raise ConditionTypeError(f"'in' cannot look for {found} in an array that holds {kind}", position=position)
        return value in values

    return run


def logical(symbol: str, operands: Sequence[tuple[Run, Position | None]]) -> Run:
    # The value that decides at once: operands to its right are not evaluated, so `has_x && x.y` can guard a path.
    settles = symbol == "||"
    what = f"each side of '{symbol}'"

    def run(frame: Frame) -> Any:
        for operand, position in operands:
            value = operand(frame)
            if value is settles:
                return settles
            if value is not True and value is not False:
                expect_boolean(value, what=what, position=position)
        return not settles

    return run


def negation(operand: Run, *, position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        return not expect_boolean(operand(frame), what="what '!' negates", position=position)

    return run
