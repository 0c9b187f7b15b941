"""The detector of free text, which belongs in the caller's own system and not in a record."""

import re

from governance.boundary.rules.detectors.subject import InspectedText, TextForm

_NOTE, _REFERENCE = TextForm.NOTE, TextForm.REFERENCE
_WORDS_IN_A_LABEL = 6
_WORDS_IN_A_REFERENCE = 2
_SENTENCE = re.compile(r"\w[.!?;]\s{1,3}[^\W\d_]")
# Scripts that are written without spaces. This many characters in a row are a phrase, not a label.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{10}")
_CLOSING = (".", "!", "?", ";")


def free_text(subject: InspectedText) -> bool:
    """Whether the text has more words than a label, is a sentence, or has a second line. Notes may be sentences."""
    text = subject.text
    if subject.form is _NOTE:
        return False
    if "\n" in text or "\r" in text:
        return True
    if not text.isascii() and _UNSPACED.search(text):
        return True
    if " " not in text and "\t" not in text:
        return False
    words = len(text.split())
    if words > (_WORDS_IN_A_REFERENCE if subject.form is _REFERENCE else _WORDS_IN_A_LABEL):
        return True
    return words >= 3 and (text.endswith(_CLOSING) or _SENTENCE.search(text) is not None)


_WORD_OF_PROSE = re.compile(r"[^\W\d_]{2}|[^\x00-\x7f]")


def free_text_in_words(subject: InspectedText) -> bool:
    """The same, for texts with words: `0 0 12 * * ?` is a schedule."""
    return _WORD_OF_PROSE.search(subject.text) is not None and free_text(subject)
