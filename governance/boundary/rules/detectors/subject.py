"""What a detector looks at: normalised text, what its key hints at, and where it was written."""

from enum import Enum
from typing import NamedTuple


class TextForm(Enum):
    """The same words mean different things in a value, an opaque reference, a note and a key."""

    VALUE = "value"
    REFERENCE = "reference"
    NOTE = "note"
    KEY = "key"


class InspectedText(NamedTuple):
    text: str
    hints: frozenset[str] = frozenset()
    form: TextForm = TextForm.VALUE


def mentions(text: str, words: tuple[str, ...]) -> bool:
    """Does any of these lower-case words occur? Much cheaper than the pattern that then looks closely."""
    return any(map(text.lower().__contains__, words))
