"""Detectors of names, dates of birth and ages. A name is recognized by a key or title before it, by a common given name
next to another name, or by the caret form of HL7 and DICOM."""

import re
from itertools import pairwise

from governance.boundary.rules.detectors.subject import InspectedText, TextForm, mentions
from governance.boundary.rules.text import fold
from governance.boundary.rules.vocabulary import GIVEN_NAMES

_NOTE, _REFERENCE = TextForm.NOTE, TextForm.REFERENCE
_LETTERS = r"[^\W\d_]"
_NAME_WORD = re.compile(rf"{_LETTERS}+(?:['-]{_LETTERS}+)*")
_TITLED = re.compile(
    r"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Sra?|Herr|Frau|Mme|Sheikh|Sheikha|Sayyid|Pasteur|Sister)\b\.?\s{1,3}"
    rf"(?=[^\W\d_a-z]){_LETTERS}[\w'-]"
    r"|(?:السيد|السيدة|الدكتور|الدكتورة|الشيخ)\s{1,3}" + _LETTERS
)
_CARET = re.compile(rf"(?<![\w^]){_LETTERS}[\w'-]{{1,40}}\^{_LETTERS}[\w'-]")
_WHOLE_NAME = re.compile(rf"{_LETTERS}[\w'.-]{{0,40}}(?:,? {_LETTERS}[\w'.-]{{0,40}}){{0,3}}")
_PARTICLES = frozenset(["al", "el", "bin", "ibn", "bint", "van", "von", "de", "da", "dos", "di", "la", "le", "du"])

_BIRTH_LABEL = re.compile(
    r"(?i:\b(?:d\.?o\.?b\b|date[\s_-]?of[\s_-]?birth|birth[\s_-]?(?:date|day)|born|geb(?:oren)?\b"
    r"|n[ée]e? le\b|fecha de nacimiento|data di nascita)|تاريخ الميلاد)[^0-9\n]{0,16}[0-9]{1,4}"
)
_AGE = re.compile(
    r"(?i:\b[0-9]{1,3}[\s-]{0,2}(?:y/o|yo\b|yrs? old|years?[\s-]old)"
    r"|\b(?:aged|age)[\s:=]{1,3}[0-9]{1,3}\b(?![\w-]))"
)
_BIRTH_WORDS = ("birth", "dob", "d.o.b", "born", "geb", "né", "ne le", "nee le", "fecha", "nascita", "ميلاد")
_AGE_WORDS = ("y/o", "yo", " old", "-old", "age")
_SMALL_NUMBER = re.compile(r"[0-9]{1,3}(?:\.[0-9]+)?(?:\s?(?:y|yr|yrs|years?))?")
_HAS_DIGIT = re.compile(r"[0-9]")


def date_of_birth(subject: InspectedText) -> bool:
    text = subject.text
    if "birth" in subject.hints:
        return True
    if "age" in subject.hints and _SMALL_NUMBER.fullmatch(text):
        return True
    if mentions(text, _BIRTH_WORDS) and _BIRTH_LABEL.search(text):
        return True
    return mentions(text, _AGE_WORDS) and _AGE.search(text) is not None


def person_name(subject: InspectedText) -> bool:
    text = subject.text
    if subject.hints and _hinted_name(subject):
        return True
    if "^" in text and _CARET.search(text):
        return True
    if " " not in text and "\t" not in text and "\n" not in text and "," not in text:
        return False
    return _TITLED.search(text) is not None or _given_name_pair(subject)


def _hinted_name(subject: InspectedText) -> bool:
    """Whether the key hints at a person and the value is made of letters. After `patient` one word is enough."""
    strong = "person" in subject.hints
    if not strong and "role" not in subject.hints:
        return False
    text = subject.text
    if not _WHOLE_NAME.fullmatch(text) or _HAS_DIGIT.search(text) or "_" in text:
        return False
    words = text.split()
    enough = len(words) >= 2 or (strong and "-" not in text and "." not in text)
    return enough and all(word[0] != word[0].lower() or not word[0].isascii() for word in words[:1] + words[-1:])


# The words of a handle, as in user names and mail addresses: `amina.yusuf`, `AminaYusuf`, `amina_yusuf-7`. Capitals
# inside a word begin a new one.
_HANDLE_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_\x00-\x7f]+")
# Shorter ones are initials, prefixes and units.
_SHORTEST_NAME = 3


def name_in_handle(text: str) -> bool:
    """Whether a given name stands next to another word of letters in an identifier: `amina-yusuf-1984`, `doe_jane`."""
    words = [word.lower() for word in _HANDLE_WORD.findall(text) if len(word) >= _SHORTEST_NAME]
    return len(words) > 1 and any(map(_is_given, words))


def _given_name_pair(subject: InspectedText) -> bool:
    """Whether the text has a given name next to another name: `Amina Yusuf`, `Yusuf, Amina`, `Fatima al Mansoori`. In
    lower case only if the name is the whole text."""
    text = subject.text
    words = list(_NAME_WORD.finditer(text))
    whole = subject.form is not _NOTE and 2 <= len(words) <= 4 and _WHOLE_NAME.fullmatch(text) is not None
    if subject.form is _REFERENCE and whole and all(word[0][0].isupper() for word in words):
        return True
    for word, following in pairwise(words):
        gap = text[word.end() : following.start()]
        if gap.strip(" .,\t\n") or len(gap) > 3 or not (whole or _capital(word[0])):
            continue
        if _is_given(following[0]) and "," in gap and _capital(following[0]):
            return True
        if _is_given(word[0]) and "," not in gap and (whole or _surname_like(following[0])):
            return True
    return False


def _capital(word: str) -> bool:
    return word[0].isupper() or not word[0].isascii()


def _surname_like(word: str) -> bool:
    return _capital(word) or word in _PARTICLES


def _is_given(word: str) -> bool:
    word = word.lower()
    return word in GIVEN_NAMES or (not word.isascii() and fold(word) in GIVEN_NAMES)
