"""The input of a detector: normalized text, what its key hints at, and where it was written."""

from enum import Enum
from typing import NamedTuple


class TextForm(Enum):
    """Where a text was written. The same words mean different things in a value, a reference, a note and a key."""

    VALUE = "value"
    REFERENCE = "reference"
    NOTE = "note"
    KEY = "key"


class InspectedText(NamedTuple):
    text: str
    hints: frozenset[str] = frozenset()
    form: TextForm = TextForm.VALUE


def mentions(text: str, words: tuple[str, ...]) -> bool:
    """Whether any of these lower-case words occurs. Much faster than the pattern, which runs only after this."""
    return any(map(text.lower().__contains__, words))
