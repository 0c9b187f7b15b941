"""The detector of short clinical phrases. Which they are stands in a data file; nothing here knows a disease."""

import re
from itertools import pairwise

from governance.boundary.rules.detectors.subject import InspectedText, TextForm
from governance.boundary.rules.text import fold
from governance.boundary.rules.vocabularies import CLINICAL

_WORD = re.compile(r"[^\W\d_]+|[0-9]+")


def clinical_phrase(subject: InspectedText) -> bool:
    """A phrase of the vocabulary between spaces, or a text that is nothing but its words: `severe-asthma`. The slug
    `chest-pain-triage-v2` is a name of something else, and keys are names."""
    if subject.form is TextForm.KEY:
        return False
    text = subject.text if subject.text.isascii() else fold(subject.text)
    text = text.lower()
    found = list(_WORD.finditer(text))
    words = [match[0] for match in found]
    if CLINICAL.first_words.isdisjoint(words):
        return False
    if CLINICAL.covers(words):
        return True
    return any(_stands_in_prose(text, found, start, size) for start, size in CLINICAL.phrases_in(words))


def _stands_in_prose(text: str, found: list[re.Match[str]], start: int, size: int) -> bool:
    """Whether only spaces separate the words, as in prose and not as in an identifier."""
    gaps = (text[one.end() : two.start()] for one, two in pairwise(found[start : start + size]))
    return size > 1 and all(gap.isspace() for gap in gaps)
