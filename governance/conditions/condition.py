"""A condition ready to run: the tree compiled to closures once, and a bounded cache of compiled conditions.

Parsing is in `parser`, operations on values are in `values`.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, Final, TypeAlias

from governance.conditions import arithmetic, static
from governance.conditions.ast import (
    SCALAR_LITERALS,
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
    Operator,
    Path,
    StringLiteral,
)
from governance.conditions.dialect import Dialect
from governance.conditions.errors import (
    ConditionError,
    ConditionLimitError,
    ConditionSyntaxError,
    ConditionTypeError,
    MissingPathError,
    Position,
)
from governance.conditions.limits import MAX_CACHED_CONDITIONS, MAX_STEPS, MAX_STRING_CHARACTERS, check_expression
from governance.conditions.parser import condition_parse
from governance.conditions.scope import EvaluationScope, sample_number
from governance.conditions.values import (
    EQUATABLE_KINDS,
    KIND_OF,
    MISSING,
    NUMBER,
    ORDERED_KINDS,
    STRING,
    Instant,
    check_array,
    check_needle,
    comparable,
    contains,
    kind_of,
    scan_steps,
)


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


def _expect_boolean(value: Any, *, what: str, position: Position | None) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ConditionTypeError(f"{what} must be boolean, not {kind_of(value)}", position=position)


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


def _constant_set(node: Expression) -> tuple[str, frozenset[Any]] | None:
    """The kind and the values of an array of literals of one kind, which can be looked up instead of scanned."""
    if not isinstance(node, ArrayLiteral):
        return None
    values = [item.value for item in node.items if isinstance(item, SCALAR_LITERALS)]
    kinds = {kind_of(value) for value in values}
    if len(values) != len(node.items) or len(kinds) != 1:
        return None
    return kinds.pop(), frozenset(values)


def _constant_membership(left: Run, *, kind: str, values: frozenset[Any], position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        value = left(frame)
        found = check_needle(value, position=position)
        # Checked before the lookup, because in Python `True in {1}` is true.
        if found != kind:
            raise ConditionTypeError(f"'in' cannot look for {found} in an array that holds {kind}", position=position)
        return value in values

    return run


def _logical(symbol: str, operands: Sequence[tuple[Run, Position | None]]) -> Run:
    # The value that decides at once: operands to its right are not evaluated, so `has_x && x.y` can guard a path.
    settles = symbol == "||"
    what = f"each side of '{symbol}'"

    def run(frame: Frame) -> Any:
        for operand, position in operands:
            value = operand(frame)
            if value is settles:
                return settles
            if value is not True and value is not False:
                _expect_boolean(value, what=what, position=position)
        return not settles

    return run


def negation(operand: Run, *, position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        return not _expect_boolean(operand(frame), what="what '!' negates", position=position)

    return run


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


def sample(operand: Run, *, salt: str = "", position: Position | None) -> Run:
    def run(frame: Frame) -> Any:
        share = operand(frame)
        if KIND_OF.get(type(share)) != NUMBER:
            raise ConditionTypeError(f"sample takes a number, not {kind_of(share)}", position=position)
        if not 0 <= share <= 1:
            raise ConditionLimitError("sample takes a number from 0 to 1", position=position)
        scope = frame.scope
        place = sample_number(definition_id=scope.definition_id, case_id=scope.case_id, salt=salt)
        # Scaling a double by a power of two is exact, and so is comparing it with an integer: sample(1) is
        # always true and sample(0) never, which a rounded division would not promise.
        return place < share * _TWO_TO_64

    return run


def compile_run(node: Expression, *, required: bool = True) -> Run:
    """Compiles one node to a closure. `required=False` is only for arguments of coalesce: a missing value is passed on
    to it and not raised."""
    if isinstance(node, Path):
        return _path(node, required=required)
    if isinstance(node, HelperCall):
        return _call(node, required=required)
    if isinstance(node, Comparison):
        return _comparison(node)
    if isinstance(node, Logical):
        return _logical(node.connective, [(compile_run(item), item.position) for item in node.operands])
    if isinstance(node, Negation):
        return negation(compile_run(node.operand), position=node.position)
    return _calculated(node) if isinstance(node, Arithmetic | Minus) else _literal(node)


def _calculated(node: Arithmetic | Minus) -> Run:
    if isinstance(node, Minus):
        return arithmetic.minus(compile_run(node.operand), position=node.position)
    operands = [(compile_run(item), item.position) for item in node.operands]
    return arithmetic.calculate(node.operators, operands)


def _literal(node: ArrayLiteral | NumberLiteral | StringLiteral | BooleanLiteral) -> Run:
    if isinstance(node, ArrayLiteral):
        items = [compile_run(item) for item in node.items]
        return lambda frame: [item(frame) for item in items]
    value = node.value
    return lambda frame: value


def _comparison(node: Comparison) -> Run:
    left, position = compile_run(node.left), node.position
    if node.operator != "in":
        return comparison(node.operator, left, compile_run(node.right), position=position)
    constant = _constant_set(node.right)
    if constant is None:
        return membership(left, compile_run(node.right), position=position)
    kind, values = constant
    return _constant_membership(left, kind=kind, values=values, position=position)


def _call(node: HelperCall, *, required: bool) -> Run:
    if node.helper == "now":
        return now
    if node.helper == "coalesce":
        first, second = node.arguments
        return coalesce(compile_run(first, required=False), compile_run(second, required=required))
    operand = compile_run(node.arguments[0])
    if node.helper == "len":
        return length(operand, position=node.position)
    salts = [item.value for item in node.arguments[1:] if isinstance(item, StringLiteral)]
    return sample(operand, salt="".join(salts), position=node.position)


def _path(node: Path, *, required: bool) -> Run:
    segments, position = node.segments, node.position

    def run(frame: Frame) -> Any:
        value: Any = frame.context
        for segment in segments:
            value = value.get(segment, MISSING) if type(value) is dict else _step(value, segment, node)
        if value is MISSING and required:
            name = ".".join(segments)
            raise MissingPathError(f"the context has no value at '{name}'", path=segments, position=position)
        if type(value) is float and not isfinite(value):
            raise ConditionTypeError(f"'{'.'.join(segments)}' is not a finite number", position=position)
        return value

    return run


def _step(value: Any, segment: str, node: Path) -> Any:
    """One step of a path through something that is not a plain dict."""
    if value is MISSING or value is None:
        return MISSING
    if isinstance(value, Mapping):
        return value.get(segment, MISSING)
    # This is not a missing value but an unexpected shape. coalesce must not hide it.
    raise ConditionTypeError(
        f"'{'.'.join(node.segments)}' passes through {kind_of(value)}, which has no fields",
        position=node.position,
    )


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
            return _expect_boolean(result, what="a condition", position=self.expression.position)
        except ConditionError as error:
            error.source = self.source
            raise
        except RecursionError:  # depends on how deep the caller's own stack is: the limits alone cannot exclude it
            raise ConditionLimitError("the call stack is exhausted") from None


def compile_condition(source: str, *, dialect: Dialect = Dialect.PLAIN) -> Condition:
    """Parses and compiles a condition. The same text gives the cached one."""
    if not isinstance(source, str):
        raise ConditionSyntaxError("a condition is text")
    return _compile(source, dialect)


@lru_cache(maxsize=MAX_CACHED_CONDITIONS)
def _compile(source: str, dialect: Dialect) -> Condition:
    expression = condition_parse(source, dialect=dialect)
    nodes = check_expression(expression)
    return Condition(
        source=source,
        expression=expression,
        paths=static.paths(expression),
        required_paths=static.required_paths(expression),
        uses_sample=static.uses_helper(expression, "sample"),
        uses_now=static.uses_helper(expression, "now"),
        _run=compile_run(expression),
        # Every node runs at most once, so its step is counted here and not during the evaluation.
        _steps=MAX_STEPS - nodes,
    )
