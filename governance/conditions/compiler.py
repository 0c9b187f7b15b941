"""Compiles the tree into closures. The tree is walked once, so that an evaluation is only a few function calls."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from governance.conditions import helpers, operators
from governance.conditions.ast import (
    ArrayLiteral,
    BooleanLiteral,
    Comparison,
    Expression,
    HelperCall,
    Logical,
    Negation,
    NumberLiteral,
    Path,
    StringLiteral,
)
from governance.conditions.errors import ConditionTypeError, MissingPathError
from governance.conditions.frame import Frame, Run
from governance.conditions.values import MISSING, kind_of


def compile_expression(node: Expression, *, required: bool = True) -> Run:
    """Compiles one node. `required=False` is only for arguments of coalesce: a missing value is passed on to it and
    not raised."""
    if isinstance(node, Path):
        return _path(node, required=required)
    if isinstance(node, HelperCall):
        return _call(node, required=required)
    if isinstance(node, Comparison):
        return _comparison(node)
    if isinstance(node, Logical):
        return operators.logical(node.connective, [(compile_expression(item), item.position) for item in node.operands])
    if isinstance(node, Negation):
        return operators.negation(compile_expression(node.operand), position=node.position)
    return _literal(node)


def _literal(node: ArrayLiteral | NumberLiteral | StringLiteral | BooleanLiteral) -> Run:
    if isinstance(node, ArrayLiteral):
        items = [compile_expression(item) for item in node.items]
        return lambda frame: [item(frame) for item in items]
    value = node.value
    return lambda frame: value


def _comparison(node: Comparison) -> Run:
    left, position = compile_expression(node.left), node.position
    if node.operator != "in":
        return operators.comparison(node.operator, left, compile_expression(node.right), position=position)
    constant = operators.constant_set(node.right)
    if constant is None:
        return operators.membership(left, compile_expression(node.right), position=position)
    kind, values = constant
    return operators.constant_membership(left, kind=kind, values=values, position=position)


def _call(node: HelperCall, *, required: bool) -> Run:
    if node.helper == "now":
        return helpers.now
    if node.helper == "coalesce":
        first, second = node.arguments
        return helpers.coalesce(
            compile_expression(first, required=False), compile_expression(second, required=required)
        )
    build = helpers.length if node.helper == "len" else helpers.sample
    return build(compile_expression(node.arguments[0]), position=node.position)


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
