"""The words of the language: the four helpers, reserved words, and hints for habits from other languages."""

import difflib
import re
from typing import Final

from governance.conditions.ast import Helper

HELPERS: Final[dict[str, tuple[Helper, int]]] = {
    "sample": ("sample", 1),
    "now": ("now", 0),
    "len": ("len", 1),
    "coalesce": ("coalesce", 2),
}

# `null`, `and`, `or` and `not` have no meaning here. They are reserved, so that using one is an error with a hint and
# not a path that is always missing.
RESERVED: Final = frozenset({"true", "false", "in", "null", "and", "or", "not", *HELPERS})

PATH_SEGMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

WORD_HINTS: Final = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not",
    "null": "there is no null; coalesce(path, default) receives a missing or null value",
}

CHARACTER_HINTS: Final = {
    "=": "write == to compare",
    "&": "write && for and",
    "|": "write || for or",
    "'": "the string is not closed on its line, or holds a tab instead of \\t",
    '"': "the string is not closed on its line, or holds a tab instead of \\t",
    ".": "a path is written without spaces, such as step.field",
    "[": "values inside an array cannot be picked by index",
    "{": "there are no objects",
    "?": "there is no conditional operator",
    **dict.fromkeys("+-*/%", "there is no arithmetic, and names have no hyphens"),
}


def unknown_helper(name: str) -> str:
    """The message for an unknown helper, with the one that was probably meant."""
    shown = name if len(name) <= 40 else f"{name[:40]}…"
    near = difflib.get_close_matches(shown.lower(), HELPERS, n=1, cutoff=0.5)
    advice = f"did you mean '{near[0]}'?" if near else "the helpers are sample, now, len and coalesce"
    return f"unknown helper '{shown}'; {advice}"
