"""Limits on the size of a condition and on the work of one evaluation. Exceeding one is an error."""

import re
from typing import Final

from governance.conditions.ast import ArrayLiteral, Expression, HelperCall, NumberLiteral, Path, StringLiteral, walk
from governance.conditions.errors import ConditionLimitError, Position

# Together these bound parsing and evaluation: a source gives at most MAX_NODES operations, and all work that grows with
# the context (scanning arrays) counts against MAX_STEPS. Without them a rule could occupy a web thread.
MAX_SOURCE_CHARACTERS: Final = 2_000
MAX_DEPTH: Final = 32
MAX_NODES: Final = 256
MAX_ARRAY_ITEMS: Final = 100
MAX_PATH_SEGMENTS: Final = 16
MAX_NUMBER_CHARACTERS: Final = 32
# Programs that read JSON numbers as doubles cannot represent all larger integers exactly.
MAX_INTEGER: Final = 2**53 - 1
MAX_LIST_ITEMS: Final = 10_000
MAX_STRING_CHARACTERS: Final = 1_024
MAX_STEPS: Final = 50_000
# Comparing strings of this length takes about as long as one more item of an array.
CHARACTERS_PER_STEP: Final = 256
MAX_CACHED_CONDITIONS: Final = 512

_LARGE: Final = f"a condition may have at most {MAX_NODES} parts, and as many brackets"
_DEEP: Final = f"a condition may be nested at most {MAX_DEPTH} deep"

# A string is matched as a whole, so that brackets inside it do not count. Its closing quote is optional: otherwise each
# quote of an unclosed string would be tried up to the end, which takes quadratic time. Every part becomes exactly one
# node, so counting parts refuses nothing that the limit of the tree would accept.
_MARKS = re.compile(
    r"""
    (?P<open>[(\[]) | (?P<close>[)\]])
    | (?P<part> "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'? | [0-9.]+[eE][+-]?[0-9]+ | [\w.]+ | [<>=!]=? )
    """,
    re.VERBOSE,
)


def position_at(source: str, index: int) -> Position:
    """The line and column of an index into the source."""
    return Position(source.count("\n", 0, index) + 1, index - source.rfind("\n", 0, index))


def check_source(source: str) -> None:
    """Refuses text that is too long, too deep or has too many parts."""
    # Before the parser: its time and its call stack grow with the text.
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise ConditionLimitError(f"a condition may have at most {MAX_SOURCE_CHARACTERS} characters")
    depth = opened = parts = 0
    for match in _MARKS.finditer(source):
        mark = match.lastgroup
        if mark == "open":
            depth += 1
            opened += 1
        elif mark == "close":
            depth -= 1
        else:
            parts += 1
        if depth > MAX_DEPTH or opened > MAX_NODES or parts > MAX_NODES:
            problem = _DEEP if depth > MAX_DEPTH else _LARGE
            raise ConditionLimitError(problem, position=position_at(source, match.start()))


def check_expression(expression: Expression) -> int:
    """Refuses a tree that is too large or too deep. Returns its number of nodes."""
    nodes = 0
    for node, depth in walk(expression):
        nodes += 1
        if nodes > MAX_NODES:
            raise ConditionLimitError(f"a condition may have at most {MAX_NODES} parts", position=node.position)
        if depth > MAX_DEPTH:
            raise ConditionLimitError(_DEEP, position=node.position)
        _check_node(node)
    return nodes


def _check_node(node: Expression) -> None:
    if isinstance(node, ArrayLiteral) and len(node.items) > MAX_ARRAY_ITEMS:
        problem = f"an array may be written with at most {MAX_ARRAY_ITEMS} items"
    elif isinstance(node, Path) and len(node.segments) > MAX_PATH_SEGMENTS:
        problem = f"a path may have at most {MAX_PATH_SEGMENTS} segments"
    elif isinstance(node, StringLiteral) and len(node.value) > MAX_STRING_CHARACTERS:
        problem = f"a string may have at most {MAX_STRING_CHARACTERS} characters"
    elif isinstance(node, NumberLiteral) and isinstance(node.value, int) and abs(node.value) > MAX_INTEGER:
        problem = f"a whole number may be at most {MAX_INTEGER}"
    elif isinstance(node, HelperCall) and node.helper == "sample" and _is_impossible_share(node.arguments[0]):
        problem = "sample takes a number from 0 to 1"
    else:
        return
    raise ConditionLimitError(problem, position=node.position)


def _is_impossible_share(node: Expression) -> bool:
    """Whether a share that is written in the source is outside 0 to 1. Found now, while its author can correct it, and
    not when a request reaches the rule."""
    return isinstance(node, NumberLiteral) and not 0 <= node.value <= 1
