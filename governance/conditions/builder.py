"""Builds the tree while the parser runs, and refuses what the grammar cannot refuse with a good message."""

import math
import re
from typing import Any, cast

from lark import Token, Transformer

from governance.conditions.ast import (
    Arithmetic,
    Arithmetical,
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
from governance.conditions.errors import ConditionLimitError, ConditionSyntaxError, Position
from governance.conditions.limits import MAX_NUMBER_CHARACTERS
from governance.conditions.scope import MAX_SALT_CHARACTERS
from governance.conditions.vocabulary import HELPERS, RESERVED, WORD_HINTS, unknown_helper

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}


def _position(token: Token) -> Position:
    return Position(cast(int, token.line), cast(int, token.column))


class TreeBuilder(Transformer[Token, Any]):
    """One method per rule of the grammar. Each gets the finished children of its rule."""

    def disjunction(self, operands: list[Expression]) -> Expression:
        return Logical("||", tuple(operands), position=operands[0].position)

    def conjunction(self, operands: list[Expression]) -> Expression:
        return Logical("&&", tuple(operands), position=operands[0].position)

    def comparison(self, parts: list[Any]) -> Expression:
        left, operator, right, *rest = parts
        if rest:
            raise ConditionSyntaxError(
                "comparisons do not chain; write a < b && b < c, or use parentheses",
                position=_position(rest[0]),
            )
        return Comparison(cast(Operator, str(operator)), left, right, position=_position(operator))

    def negation(self, parts: list[Any]) -> Expression:
        return Negation(parts[1], position=_position(parts[0]))

    def number(self, parts: list[Token]) -> Expression:
        return NumberLiteral(_number(parts[0]), position=_position(parts[0]))

    def string(self, parts: list[Token]) -> Expression:
        return StringLiteral(_unescape(parts[0]), position=_position(parts[0]))

    def true(self, parts: list[Token]) -> Expression:
        return BooleanLiteral(True, position=_position(parts[0]))

    def false(self, parts: list[Token]) -> Expression:
        return BooleanLiteral(False, position=_position(parts[0]))

    def path(self, parts: list[Token]) -> Expression:
        segments = tuple(parts[0].split("."))
        head = segments[0]
        if head in RESERVED:
            hint = f"{head} is a helper, call it as {head}(…)" if head in HELPERS else WORD_HINTS.get(head)
            message = f"'{head}' is a reserved word and cannot begin a path"
            raise ConditionSyntaxError(f"{message}; {hint}" if hint else message, position=_position(parts[0]))
        return Path(segments, position=_position(parts[0]))

    def call(self, parts: list[Any]) -> Expression:
        name, *arguments = parts
        position = _position(name)
        if name not in HELPERS:
            raise ConditionSyntaxError(unknown_helper(str(name)), position=position)
        helper, arity = HELPERS[name]
        if len(arguments) != arity:
            wanted = ("no arguments", "one argument", "two arguments")[arity]
            raise ConditionSyntaxError(f"{helper} takes {wanted}, not {len(arguments)}", position=position)
        return HelperCall(helper, tuple(arguments), position=position)

    def array(self, parts: list[Any]) -> Expression:
        return ArrayLiteral(tuple(parts[1:]), position=_position(parts[0]))


class ExtendedBuilder(TreeBuilder):
    """What the extended dialect has more."""

    def sum(self, parts: list[Any]) -> Expression:
        operands, operators = tuple(parts[::2]), tuple(cast(Arithmetical, str(token)) for token in parts[1::2])
        return Arithmetic(operators, operands, position=operands[0].position)

    product = sum

    def minus(self, parts: list[Any]) -> Expression:
        sign, operand = parts
        position = _position(sign)
        if isinstance(operand, NumberLiteral):
            return NumberLiteral(-operand.value, position=position)
        return Minus(operand, position=position)

    def call(self, parts: list[Any]) -> Expression:
        name, *arguments = parts
        if name == "sample" and len(arguments) not in (1, 2):
            message = f"sample takes one argument, or two, not {len(arguments)}"
            raise ConditionSyntaxError(message, position=_position(name))
        if name != "sample" or len(arguments) == 1:
            return super().call(parts)
        salt = arguments[1]
        # Written in the source, so that an author sees which draws are independent.
        usable = isinstance(salt, StringLiteral) and 0 < len(salt.value) <= MAX_SALT_CHARACTERS
        if not usable or not salt.value.isprintable():
            message = f"the salt of sample is a string of 1 to {MAX_SALT_CHARACTERS} printable characters"
            raise ConditionSyntaxError(message, position=_position(name))
        return HelperCall("sample", tuple(arguments), position=_position(name))


def _number(token: Token) -> int | float:
    """The value of a number literal."""
    # A number outside the range of a double would silently become infinity or zero, and the rule would mean something
    # else than its author wrote.
    if len(token) > MAX_NUMBER_CHARACTERS:
        message = f"a number may have at most {MAX_NUMBER_CHARACTERS} characters"
        raise ConditionLimitError(message, position=_position(token))
    if not any(mark in token for mark in ".eE"):
        return int(token)
    value = float(token)
    vanished = value == 0 and any(digit in re.split("[eE]", token)[0] for digit in "123456789")
    if math.isinf(value) or vanished:
        raise ConditionLimitError("a number is outside the range of a double", position=_position(token))
    return value


def _unescape(token: Token) -> str:
    body = token[1:-1]
    if "\\" not in body:
        return body
    start = _position(token)

    def replace(match: re.Match[str]) -> str:
        escape = match.group(1)
        position = Position(start.line, start.column + 1 + match.start())
        if len(escape) == 5:
            return _character(int(escape[1:], 16), position=position)
        if escape not in _SIMPLE_ESCAPES:
            raise ConditionSyntaxError(
                "unknown escape; strings know \\\\ \\\" \\' \\n \\r \\t and \\uXXXX", position=position
            )
        return _SIMPLE_ESCAPES[escape]

    return _ESCAPE.sub(replace, body)


def _character(number: int, *, position: Position) -> str:
    # Half a surrogate pair is not a character: it can be neither stored nor hashed.
    if 0xD800 <= number <= 0xDFFF:
        raise ConditionSyntaxError(
            "\\u cannot name half of a surrogate pair; write the character itself", position=position
        )
    return chr(number)
