"""Tree to canonical source: one spelling per meaning, and parsing it gives the same tree back."""

import math
import re

from governance.conditions.ast import (
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
    Path,
    StringLiteral,
)
from governance.conditions.errors import ConditionLimitError, ConditionSyntaxError
from governance.conditions.limits import MAX_SOURCE_CHARACTERS, check_expression
from governance.conditions.parser import HIDDEN_CHARACTERS
from governance.conditions.vocabulary import PATH_SEGMENT, RESERVED

_ESCAPED = re.compile(f'[{HIDDEN_CHARACTERS}\ud800-\udfff"\\\\\\n\\r\\t]')
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BINDING = {"||": 1, "&&": 2}
_COMPARISON_BINDING = 3
_SUM_BINDING = 4
_PRODUCT_BINDING = 5
_TIGHTEST = 6


def format_expression(expression: Expression) -> str:
    """Write an expression in its canonical form; refuse one that the language could not read back."""
    check_expression(expression)
    text = _print(expression)
    if len(text) > MAX_SOURCE_CHARACTERS:
        raise ConditionLimitError(f"the canonical form has more than {MAX_SOURCE_CHARACTERS} characters")
    return text


def _print(node: Expression) -> str:
    if isinstance(node, Logical):
        # A nested node of the same connective keeps its parentheses: it is another tree.
        binding = _BINDING[node.connective]
        return f" {node.connective} ".join(_operand(item, above=binding) for item in node.operands)
    if isinstance(node, Comparison):
        left = _operand(node.left, above=_COMPARISON_BINDING)
        return f"{left} {node.operator} {_operand(node.right, above=_COMPARISON_BINDING)}"
    if isinstance(node, Arithmetic | Minus | Negation):
        return _print_arithmetic(node)
    if isinstance(node, HelperCall):
        return f"{node.helper}({', '.join(map(_print, node.arguments))})"
    if isinstance(node, ArrayLiteral):
        return f"[{', '.join(map(_print, node.items))}]"
    return _print_leaf(node)


def _print_arithmetic(node: Arithmetic | Minus | Negation) -> str:
    if not isinstance(node, Arithmetic):
        sign = "!" if isinstance(node, Negation) else "-"
        return f"{sign}{_operand(node.operand, above=_PRODUCT_BINDING)}"
    first, *rest = (_operand(item, above=_binding(node)) for item in node.operands)
    return " ".join([first, *(f"{symbol} {item}" for symbol, item in zip(node.operators, rest, strict=True))])


def _print_leaf(node: NumberLiteral | StringLiteral | BooleanLiteral | Path) -> str:
    if isinstance(node, Path):
        return _print_path(node)
    if isinstance(node, StringLiteral):
        return f'"{_ESCAPED.sub(_escape, node.value)}"'
    if isinstance(node, BooleanLiteral):
        return "true" if node.value else "false"
    if not math.isfinite(node.value):
        raise ConditionLimitError("a number is outside the range of a double")
    return repr(node.value)


def _operand(node: Expression, *, above: int) -> str:
    """Print an operand, in parentheses unless it binds tighter than what surrounds it."""
    return _print(node) if _binding(node) > above else f"({_print(node)})"


def _binding(node: Expression) -> int:
    if isinstance(node, Logical):
        return _BINDING[node.connective]
    if isinstance(node, Comparison):
        return _COMPARISON_BINDING
    if isinstance(node, Arithmetic):
        return _SUM_BINDING if node.operators[0] in "+-" else _PRODUCT_BINDING
    return _TIGHTEST


def _print_path(node: Path) -> str:
    if not node.segments or node.segments[0] in RESERVED or not all(map(PATH_SEGMENT.fullmatch, node.segments)):
        raise ConditionSyntaxError("a path has a segment that cannot be written")
    return ".".join(node.segments)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if "\ud800" <= char <= "\udfff":
        raise ConditionSyntaxError("a string holds half of a surrogate pair")
    return _NAMED_ESCAPES.get(char) or f"\\u{ord(char):04x}"
