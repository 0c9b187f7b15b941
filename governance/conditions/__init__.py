"""The condition language: small boolean expressions over a JSON context, for policies and workflow branches.

Pure: no database, no clock, no randomness. The language is described in docs/conditions.md.
"""

from governance.conditions.ast import Expression
from governance.conditions.condition import Condition, compile_condition
from governance.conditions.dialect import Dialect
from governance.conditions.errors import (
    ConditionError,
    ConditionLimitError,
    ConditionNumberError,
    ConditionScopeError,
    ConditionSyntaxError,
    ConditionTimeError,
    ConditionTypeError,
    MissingPathError,
)
from governance.conditions.expression import ValueExpression, compile_expression
from governance.conditions.parser import condition_parse
from governance.conditions.scope import EvaluationScope

__all__ = [
    "Condition",
    "ConditionError",
    "ConditionLimitError",
    "ConditionNumberError",
    "ConditionScopeError",
    "ConditionSyntaxError",
    "ConditionTimeError",
    "ConditionTypeError",
    "Dialect",
    "EvaluationScope",
    "Expression",
    "MissingPathError",
    "ValueExpression",
    "compile_condition",
    "compile_expression",
    "condition_parse",
]
