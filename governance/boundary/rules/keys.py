"""What a key says about its value: whether the key is forbidden, what kind of value it hints at, and whether the key
itself may be shown."""

import re
from functools import lru_cache
from typing import NamedTuple

from governance.boundary.rules.detectors import DETECTOR_NAMES, InspectedText, TextForm, tripped
from governance.boundary.rules.editions import CURRENT, FIRST
from governance.boundary.rules.lookalikes import without_disguise
from governance.boundary.rules.text import fold, has_broken_characters, normalise
from governance.boundary.rules.vocabulary import (
    ABOUT_ENDINGS,
    EXACT_KEYS,
    GIVEN_NAMES,
    HINT_ENDINGS,
    HINT_WORDS,
    LAST_WORDS,
    NOT_A_PERSONS_AGE,
    PERSONAL_NAME_OWNERS,
    UNCOUNTED_PLURALS,
)

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[a-z]+|[0-9]+")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}")
_ALL = frozenset(DETECTOR_NAMES)
_INSPECTED = 1024
_SHOWN_LENGTH = 48
_SHOWN_DIGITS = 4


class KeyFacts(NamedTuple):
    """`words` are lower-case, `hints` are kinds of value, `rules` are the rules that the key itself breaks. A
    `showable` key looks like an identifier. A `broken` key contains control characters."""

    words: tuple[str, ...]
    forbidden: bool
    hints: frozenset[str]
    showable: bool
    rules: tuple[str, ...]
    broken: bool


def key_facts(key: str, edition: int = CURRENT) -> KeyFacts:
    # Only keys that look like identifiers are cached: any other text of a request must not stay in memory after it.
    return _remembered(key, edition) if len(key) <= 64 and _PLAIN.fullmatch(key) else _facts(key, edition)


def ends_with(words: tuple[str, ...], ending: tuple[str, ...]) -> bool:
    """Whether a key ends with these words: a forbidden key also covers `patient_<key>`. Separators and case do not
    matter."""
    return "".join(words) == "".join(ending) or words[-len(ending) :] == ending


@lru_cache(maxsize=4096)
def key_words(key: str) -> tuple[str, ...]:
    """The words of a key in a contract document. For the keys of a request use `key_facts`."""
    return _split(key)


def _split(key: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_CAMEL.sub("_", fold(key)).lower()))


def _facts(key: str, edition: int) -> KeyFacts:
    start = key[:_INSPECTED]
    subject = InspectedText(normalise(start), form=TextForm.KEY)
    # A key with look-alike letters is the key that it looks like.
    words = _split(start if edition == FIRST or start.isascii() else without_disguise(subject.text))
    rules = tuple(tripped(subject, _ALL, edition)) if len(key) <= _INSPECTED else ("free_text",)
    broken = has_broken_characters(key)
    return KeyFacts(words, _forbidden(words), _hints(words), _showable(key, words), rules, broken)


_remembered = lru_cache(maxsize=4096)(_facts)


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and word not in UNCOUNTED_PLURALS else word


def _without_number(words: tuple[str, ...]) -> tuple[str, ...]:
    """`address1` and `phone_2` are an address and a phone."""
    return words[:-1] if len(words) > 1 and words[-1].isdigit() else words


def _forbidden(words: tuple[str, ...]) -> bool:
    words = _without_number(words)
    if not words:
        return False
    last, compact = words[-1], "".join(words)
    if compact in EXACT_KEYS or _singular(compact) in EXACT_KEYS:
        return True
    endings = {"".join(words[-size:]) for size in (1, 2, 3)}
    if LAST_WORDS & (endings | {_singular(ending) for ending in endings}):
        return True
    if _singular(last) == "name" and len(words) > 1:
        return words[-2] in PERSONAL_NAME_OWNERS
    return "insurance" in words


def _hints(words: tuple[str, ...]) -> frozenset[str]:
    words = _without_number(words)
    if not words:
        return frozenset()
    found = {HINT_WORDS[word] for word in words if word in HINT_WORDS}
    endings = ("".join(words[-size:]) for size in (1, 2, 3))
    found.update(HINT_ENDINGS[ending] for ending in endings if ending in HINT_ENDINGS)
    if NOT_A_PERSONS_AGE.intersection(words):
        found.discard("age")
    # A reference to a secret, or its hash, is not the secret. But a name in a reference is still a name.
    if words[-1] in ABOUT_ENDINGS:
        return frozenset(found & _STAYS_NEXT_TO_REF)
    return frozenset(found - {"secret"}) if words[-1] == "id" else frozenset(found)


_STAYS_NEXT_TO_REF = frozenset(["person", "role", "quantity"])


def _showable(key: str, words: tuple[str, ...]) -> bool:
    """Whether a key may be repeated to the caller: an identifier of a few words, without given names, with few digits,
    and not random letters."""
    if len(key) > _SHOWN_LENGTH or not _PLAIN.fullmatch(key) or not words:
        return False
    if sum(char.isdigit() for char in key) > _SHOWN_DIGITS or GIVEN_NAMES.intersection(words):
        return False
    single = sum(len(word) == 1 for word in words)
    return len(words) <= 8 and (single <= 2 or single * 2 <= len(words))
