"""Normalizes text for the detectors, so that look-alike digits, full-width characters and invisible characters do not
hide anything. Letters of other scripts that look Latin: `lookalikes`."""

import re
import unicodedata

# Characters that do not show. They would split a number or an address in two, and no detector would find it.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\u30fc"), "-")
_QUOTES = {0x2018: "'", 0x2019: "'", 0x02BC: "'"}
_PUNCTUATION = _DASHES | _QUOTES
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_BROKEN = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ud800-\udfff]")


def normalise(text: str) -> str:
    """The text in NFKC, with ASCII digits and dashes and without invisible characters."""
    # Printable ASCII would not change, and nearly all texts are that.
    if text.isascii() and text.isprintable():
        return text
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).translate(_PUNCTUATION)
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0], 0)), text)


def has_broken_characters(text: str) -> bool:
    """Whether the text has control characters or lone surrogates, which canonical JSON or the database cannot store."""
    return not (text.isascii() and text.isprintable()) and _BROKEN.search(text) is not None


def fold(text: str) -> str:
    """The normalized text without accents, for comparing words."""
    decomposed = unicodedata.normalize("NFKD", normalise(text))
    return "".join(char for char in decomposed if not unicodedata.combining(char))
