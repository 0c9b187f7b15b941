"""Parses text into a tree: limits first, then the grammar. Every failure is a ConditionError, where possible with a
position."""

import re

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from governance.conditions.ast import Expression
from governance.conditions.builder import ExtendedBuilder, TreeBuilder
from governance.conditions.dialect import Dialect
from governance.conditions.errors import ConditionError, ConditionLimitError, ConditionSyntaxError
from governance.conditions.limits import check_expression, check_source, position_at
from governance.conditions.vocabulary import CHARACTER_HINTS, WORD_HINTS

# Control, invisible and direction-changing characters. With them a rule could look different on the screen from what
# it does.
HIDDEN_CHARACTERS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_REFUSED = re.compile(f"[{HIDDEN_CHARACTERS}\ud800-\udfff]")
_LAST_WORD = re.compile(r"([A-Za-z]+)\s*\Z")


def _parser(grammar: str, builder: TreeBuilder) -> Lark:
    return Lark.open(
        grammar, rel_to=__file__, parser="lalr", lexer="basic", transformer=builder, maybe_placeholders=False
    )


_PARSERS = {
    Dialect.PLAIN: _parser("grammar.lark", TreeBuilder()),
    Dialect.EXTENDED: _parser("extended.lark", ExtendedBuilder()),
}

_TOKEN_NAMES = {
    "NUMBER": "a number",
    "STRING": "a string",
    "_LPAR": "'('",
    "_RPAR": "')'",
    "LSQB": "'['",
    "_RSQB": "']'",
    "_COMMA": "','",
    "_OR": "'||'",
    "_AND": "'&&'",
    "$END": "the end",
}


def condition_parse(source: str, *, dialect: Dialect = Dialect.PLAIN) -> Expression:
    """Parses a condition. Raises ConditionSyntaxError or ConditionLimitError."""
    if not isinstance(source, str):
        raise ConditionSyntaxError("a condition is text")
    try:
        check_source(source)
        _check_characters(source)
        expression: Expression = _PARSERS[dialect].parse(source)  # type: ignore[assignment]  # the builder replaces lark's trees
        check_expression(expression)
    except ConditionError as error:
        # A source that is too long (an error without a position) is not kept: errors appear in logs and answers.
        error.source = source if error.position else None
        raise
    except UnexpectedInput as error:
        raise _explain(error, source) from None
    except RecursionError:
        raise ConditionLimitError("the call stack is exhausted") from None
    return expression


def _check_characters(source: str) -> None:
    if not source.strip(" \t\r\n"):
        raise ConditionSyntaxError("the condition is empty", position=position_at(source, 0))
    match = _REFUSED.search(source)
    if match:
        raise ConditionSyntaxError(
            f"character U+{ord(match.group()):04X} does not show; write it as \\uXXXX inside a string",
            position=position_at(source, match.start()),
        )


def _explain(error: UnexpectedInput, source: str) -> ConditionSyntaxError:
    """The parser's error as a sentence. It never repeats the content of a string."""
    if isinstance(error, UnexpectedToken):
        token = error.token
        at_end = token.type == "$END"
        index = len(source.rstrip(" \t\r\n")) if at_end else int(token.start_pos or 0)
        wanted = "a value" if "PATH" in error.expected else "an operator or the end"
        message = f"expected {wanted} but found {_name(token)}"
        hint = _token_hint(token, before=source[:index])
    elif isinstance(error, UnexpectedCharacters):
        index = int(error.pos_in_stream or 0)
        char = source[index]
        shown = f"'{char}'" if " " < char <= "~" else f"U+{ord(char):04X}"
        message, hint = f"unexpected character {shown}", CHARACTER_HINTS.get(char)
    else:
        index, message, hint = len(source), "the condition ends too early", None
    full = f"{message}; {hint}" if hint else message
    return ConditionSyntaxError(full, position=position_at(source, index), source=source)


def _name(token: Token) -> str:
    return _TOKEN_NAMES.get(token.type) or f"'{token[:40]}'"


def _token_hint(token: Token, *, before: str) -> str | None:
    """A hint for a habit from another language: by the unexpected token, the word before it, or a minus sign."""
    if token.type == "NUMBER" and token.startswith("-"):
        return CHARACTER_HINTS["-"]
    if token.type == "LSQB":
        return CHARACTER_HINTS["["]
    own = WORD_HINTS.get(str(token)) if token.type == "PATH" else None
    previous = _LAST_WORD.search(before)
    return own or (WORD_HINTS.get(previous.group(1)) if previous else None)
