"""What a step's expressions and templates evaluate to. The one place where the engine meets `governance.conditions`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from governance.conditions import ConditionError, EvaluationScope, compile_condition
from workflows.kinds.base import Json
from workflows.kinds.template import fill


class CannotDecide(Exception):
    """An expression could not be evaluated on this context."""


@dataclass(frozen=True, slots=True)
class ContextEvaluator:
    """Of one step at one moment: called as a function it decides a condition."""

    context: Json
    scope: EvaluationScope

    def __call__(self, expression: str) -> bool:
        try:
            return compile_condition(expression).evaluate(self.context, scope=self.scope)
        except ConditionError as error:
            raise CannotDecide from error

    def value(self, expression: str) -> Any:
        """The value of an expression: a path, a condition, or a literal."""
        value: Any = self.context
        for name in expression.strip().split("."):
            if not isinstance(value, dict) or name not in value:
                return self(expression)
            value = value[name]
        return value

    def moment(self, expression: str) -> datetime:
        value = self.value(expression)
        try:
            found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
            if found.utcoffset() is None:
                raise CannotDecide
            return found.astimezone(UTC)
        except (TypeError, ValueError, OverflowError) as error:
            raise CannotDecide from error

    def fill(self, template: Any) -> Any:
        return fill(template, self.context)
