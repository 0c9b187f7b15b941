"""An expression of the extended dialect that gives any JSON value: templates, assignments and outputs use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from governance.conditions import static
from governance.conditions.ast import Expression
from governance.conditions.condition import Frame, Run, compile_run
from governance.conditions.dialect import Dialect
from governance.conditions.errors import ConditionError, ConditionLimitError, ConditionSyntaxError
from governance.conditions.limits import MAX_CACHED_CONDITIONS, MAX_STEPS, check_expression
from governance.conditions.parser import condition_parse
from governance.conditions.scope import EvaluationScope
from governance.conditions.values import Instant, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueExpression:
    """A compiled expression. It has no state, so threads can share it."""

    source: str
    expression: Expression = field(repr=False)
    paths: frozenset[tuple[str, ...]]
    required_paths: frozenset[tuple[str, ...]] = field(repr=False)
    uses_sample: bool
    uses_now: bool
    _run: Run = field(repr=False, compare=False)
    _steps: int = field(repr=False, compare=False)

    def value(self, context: Mapping[str, Any], *, scope: EvaluationScope) -> Any:
        """A JSON value, or raises a ConditionError. An instant becomes the text of a timestamp in UTC. A value of the
        context is given as it is, not as a copy."""
        try:
            return _json(self._run(Frame(context, scope, self._steps)))
        except ConditionError as error:
            error.source = self.source
            raise
        except RecursionError:  # as for a condition: it depends on the caller's own stack
            raise ConditionLimitError("the call stack is exhausted") from None


def compile_expression(source: str) -> ValueExpression:
    """Parses and compiles an expression of the extended dialect. The same text gives the cached one."""
    if not isinstance(source, str):
        raise ConditionSyntaxError("an expression is text")
    return _compile(source)


@lru_cache(maxsize=MAX_CACHED_CONDITIONS)
def _compile(source: str) -> ValueExpression:
    expression = condition_parse(source, dialect=Dialect.EXTENDED)
    nodes = check_expression(expression)
    return ValueExpression(
        source=source,
        expression=expression,
        paths=static.paths(expression),
        required_paths=static.required_paths(expression),
        uses_sample=static.uses_helper(expression, "sample"),
        uses_now=static.uses_helper(expression, "now"),
        _run=compile_run(expression),
        _steps=MAX_STEPS - nodes,
    )


def _json(value: Any) -> Any:
    if type(value) is Instant:
        return timestamp(value.at)
    # Only the arrays that the expression itself writes can hold an instant; they are at most 32 deep.
    if type(value) is list and any(type(item) in (Instant, list) for item in value):
        return [_json(item) for item in value]
    return value
