"""Closures for the four helpers (`now`, `coalesce`, `len`, `sample`), made from compiled arguments."""

from typing import Any, Final

from governance.conditions.errors import ConditionLimitError, ConditionTypeError, Position
from governance.conditions.frame import Frame, Run
from governance.conditions.scope import sample_number
from governance.conditions.values import KIND_OF, MISSING, NUMBER, Instant, check_array, kind_of

_TWO_TO_64: Final = 2.0**64


def now(frame: Frame) -> Any:
    return Instant(frame.scope.now)


def coalesce(first: Run, second: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = first(frame)
        return second(frame) if value is MISSING or value is None else value

    return run


def length(operand: Run, *, position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is str:
            return len(value)
        return check_array(value, what="len takes a string or an array", position=position)

    return run


def sample(operand: Run, *, position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        share = operand(frame)
        if KIND_OF.get(type(share)) != NUMBER:
            raise ConditionTypeError(f"sample takes a number, not {kind_of(share)}", position=position)
        if not 0 <= share <= 1:
            raise ConditionLimitError("sample takes a number from 0 to 1", position=position)
        scope = frame.scope
        place = sample_number(definition_id=scope.definition_id, case_id=scope.case_id)
        # Scaling a double by a power of two is exact, and so is comparing it with an integer: sample(1) is
        # always true and sample(0) never, which a rounded division would not promise.
        return place < share * _TWO_TO_64

    return run
