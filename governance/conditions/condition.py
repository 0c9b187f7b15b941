"""A compiled condition, and the cache of compiled conditions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from governance.conditions import static
from governance.conditions.ast import Expression
from governance.conditions.compiler import compile_expression
from governance.conditions.errors import ConditionError, ConditionLimitError, ConditionSyntaxError
from governance.conditions.frame import Frame, Run, expect_boolean
from governance.conditions.limits import MAX_CACHED_CONDITIONS, MAX_STEPS, check_expression
from governance.conditions.parser import condition_parse
from governance.conditions.scope import EvaluationScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A compiled condition. It has no state, so threads can share it."""

    source: str
    expression: Expression = field(repr=False)
    paths: frozenset[tuple[str, ...]]
    required_paths: frozenset[tuple[str, ...]] = field(repr=False)
    uses_sample: bool
    uses_now: bool
    _run: Run = field(repr=False, compare=False)
    _steps: int = field(repr=False, compare=False)

    def evaluate(self, context: Mapping[str, Any], *, scope: EvaluationScope) -> bool:
        """True or false, or raises a ConditionError. There is no default for a condition that fails."""
        try:
            result = self._run(Frame(context, scope, self._steps))
            if result is True or result is False:
                return bool(result)
            return expect_boolean(result, what="a condition", position=self.expression.position)
        except ConditionError as error:
            error.source = self.source
            raise
        except RecursionError:  # depends on how deep the caller's own stack is: the limits alone cannot exclude it
            raise ConditionLimitError("the call stack is exhausted") from None


def compile_condition(source: str) -> Condition:
    """Parses and compiles a condition. The same text gives the cached one."""
    if not isinstance(source, str):
        raise ConditionSyntaxError("a condition is text")
    return _compile(source)


@lru_cache(maxsize=MAX_CACHED_CONDITIONS)
def _compile(source: str) -> Condition:
    expression = condition_parse(source)
    nodes = check_expression(expression)
    return Condition(
        source=source,
        expression=expression,
        paths=static.paths(expression),
        required_paths=static.required_paths(expression),
        uses_sample=static.uses_helper(expression, "sample"),
        uses_now=static.uses_helper(expression, "now"),
        _run=compile_expression(expression),
        # Every node runs at most once, so its step is counted here and not during the evaluation.
        _steps=MAX_STEPS - nodes,
    )
