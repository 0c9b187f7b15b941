"""Arithmetic of the extended dialect. Whole numbers stay whole, except in a division; nothing is rounded in silence."""

import operator
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

from governance.conditions.ast import Arithmetical
from governance.conditions.errors import ConditionNumberError, ConditionTypeError, Position
from governance.conditions.limits import MAX_INTEGER
from governance.conditions.values import KIND_OF, NUMBER, STRING, kind_of

Number = int | float

_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    # The sign of the divisor, as in Python: -1 % 7 is 6, so a remainder of a count can choose one of seven.
    "%": operator.mod,
}


def calculate(
    operators: Sequence[Arithmetical], operands: Sequence[tuple[Callable[[Any], Any], Position | None]]
) -> Callable[[Any], Any]:
    """From left to right; one operand more than operators."""
    (first, start), *rest = operands
    steps = [
        (symbol, _OPERATIONS[symbol], *operand, symbol in "/%") for symbol, operand in zip(operators, rest, strict=True)
    ]

    def run(frame: Any) -> Any:
        total = _number(first(frame), symbol=operators[0], position=start)
        for symbol, operation, operand, position, divides in steps:
            value = _number(operand(frame), symbol=symbol, position=position)
            if divides and value == 0:
                raise ConditionNumberError("a division by zero has no result", position=position)
            total = _usable(operation(total, value), position=position)
        return total

    return run


def minus(operand: Callable[[Any], Any], *, position: Position | None) -> Callable[[Any], Any]:
    def run(frame: Any) -> Any:
        return _usable(-_number(operand(frame), symbol="-", position=position), position=position)

    return run


def _number(value: Any, *, symbol: str, position: Position | None) -> Number:
    kind = KIND_OF.get(type(value))
    if kind != NUMBER:
        hint = "; texts are joined in a template, not with +" if kind == STRING and symbol == "+" else ""
        raise ConditionTypeError(f"'{symbol}' takes numbers, not {kind_of(value)}{hint}", position=position)
    number: Number = value
    return _usable(number, position=position)


def _usable(number: Number, *, position: Position | None) -> Number:
    # A program that reads JSON numbers as doubles would see another number, and so would a replay through it.
    if type(number) is int:
        if abs(number) > MAX_INTEGER:
            raise ConditionNumberError(
                f"a whole number over {MAX_INTEGER} cannot be calculated with", position=position
            )
    elif not isfinite(number):
        raise ConditionNumberError("the result is too large for a number", position=position)
    return number if number else abs(number)  # no minus zero: the database would give back another value
