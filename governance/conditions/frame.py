"""The type of a compiled node, and the frame it gets when it runs."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from governance.conditions.errors import ConditionLimitError, ConditionTypeError, Position
from governance.conditions.limits import MAX_STEPS
from governance.conditions.scope import EvaluationScope
from governance.conditions.values import kind_of


class Frame:
    """One evaluation: what it can read, and how many steps it has left."""

    __slots__ = ("context", "scope", "steps_left")

    def __init__(self, context: Mapping[str, Any], scope: EvaluationScope, steps_left: int) -> None:
        self.context = context
        self.scope = scope
        self.steps_left = steps_left

    def spend(self, steps: int, *, position: Position | None) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise ConditionLimitError(f"the evaluation needs more than {MAX_STEPS} steps", position=position)


Run: TypeAlias = Callable[[Frame], Any]


def expect_boolean(value: Any, *, what: str, position: Position | None) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ConditionTypeError(f"{what} must be boolean, not {kind_of(value)}", position=position)
