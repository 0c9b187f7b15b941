"""What a step's expressions and templates evaluate to. The one place where the engine meets `governance.conditions`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from governance.conditions import ConditionError, Dialect, EvaluationScope, compile_condition, compile_expression
from workflows.kinds.base import Json
from workflows.kinds.template import fill, fill_template


class CannotDecide(Exception):
    """An expression could not be evaluated on this context."""


@dataclass(frozen=True, slots=True)
class ContextEvaluator:
    """Of one step at one moment: called as a function it decides a condition."""

    context: Json
    scope: EvaluationScope
    dialect: Dialect = Dialect.PLAIN

    def __call__(self, expression: str) -> bool:
        try:
            return compile_condition(expression, dialect=self.dialect).evaluate(self.context, scope=self.scope)
        except ConditionError as error:
            raise CannotDecide from error

    def value(self, expression: str) -> Any:
        """The value of an expression of format 2."""
        try:
            return compile_expression(expression).value(self.context, scope=self.scope)
        except ConditionError as error:
            raise CannotDecide from error

    def moment(self, expression: str) -> datetime:
        """The same, as the moment that its text says."""
        value = self.value(expression)
        try:
            found = datetime.fromisoformat(value)
            if found.utcoffset() is None:
                raise CannotDecide
            return found.astimezone(UTC)
        except (TypeError, ValueError, OverflowError) as error:
            raise CannotDecide from error

    def fill(self, template: Any) -> Any:
        """A template with its values, by the rules of the document's format."""
        if self.dialect is Dialect.PLAIN:
            return fill(template, self.context)
        try:
            return fill_template(template, self.context, self.scope)
        except ConditionError as error:
            raise CannotDecide from error
