"""The tree of a parsed condition. Nodes are values; their position in the source is not compared."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from governance.conditions.errors import Position

Operator: TypeAlias = Literal["<", "<=", "==", "!=", ">=", ">", "in"]
Connective: TypeAlias = Literal["&&", "||"]
Arithmetical: TypeAlias = Literal["+", "-", "*", "/", "%"]
Helper: TypeAlias = Literal["sample", "now", "len", "coalesce"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The base of all nodes. The position in the source is only for messages, so it is not part of equality."""

    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NumberLiteral(Node):
    value: int | float


@dataclass(frozen=True, slots=True)
class StringLiteral(Node):
    value: str


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Node):
    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Path(Node):
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HelperCall(Node):
    helper: Helper
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Negation(Node):
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    operator: Operator
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """Two or more operands joined by one connective; `a && b && c` is one node with three operands."""

    connective: Connective
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """Two or more operands from left to right: `a - b + c` is one node with two operators. They are all of one rank."""

    operators: tuple[Arithmetical, ...]
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Minus(Node):
    """The number with its sign changed. Never of a literal: the builder makes `-3` a literal."""

    operand: "Expression"


Expression: TypeAlias = (
    NumberLiteral
    | StringLiteral
    | BooleanLiteral
    | ArrayLiteral
    | Path
    | HelperCall
    | Negation
    | Comparison
    | Logical
    | Arithmetic
    | Minus
)

SCALAR_LITERALS = (NumberLiteral, StringLiteral, BooleanLiteral)


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct operands of a node, left to right."""
    if isinstance(node, Comparison):
        return (node.left, node.right)
    if isinstance(node, Logical | Arithmetic):
        return node.operands
    if isinstance(node, HelperCall):
        return node.arguments
    if isinstance(node, ArrayLiteral):
        return node.items
    if isinstance(node, Negation | Minus):
        return (node.operand,)
    return ()


def walk(expression: Expression) -> Iterator[tuple[Expression, int]]:
    """Every node with its depth; the root has depth 1."""
    # Without recursion: the depth is not checked yet, and a deep tree would exhaust the call stack.
    pending = [(expression, 1)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending.extend((child, depth + 1) for child in reversed(children(node)))
