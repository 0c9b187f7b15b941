"""The detectors: one function per rule, which says whether a normalized text breaks it. They return yes or no, never a
part of the text."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from governance.boundary.rules.detectors import labels
from governance.boundary.rules.detectors.blobs import base64_blob, data_url
from governance.boundary.rules.detectors.clinical import clinical_phrase
from governance.boundary.rules.detectors.contact import email, phone
from governance.boundary.rules.detectors.credentials import bearer_token, private_key, secret_token
from governance.boundary.rules.detectors.identity import card_number, insurance_id, medical_record_number, national_id
from governance.boundary.rules.detectors.person import date_of_birth, person_name
from governance.boundary.rules.detectors.prose import free_text, free_text_in_words
from governance.boundary.rules.detectors.subject import InspectedText, TextForm
from governance.boundary.rules.detectors.written import embedded_document, vendor_token, written_email
from governance.boundary.rules.editions import CURRENT, FIRST
from governance.boundary.rules.readings import decoded, disguised, is_plain_hash
from governance.boundary.rules.text import normalise
from governance.boundary.rules.vocabularies import CLINICAL
from governance.boundary.rules.vocabulary import GIVEN_NAMES, LABEL_WORDS, PERSONAL_NAME_OWNERS, SURNAMES

Detector = Callable[[InspectedText], bool]

DETECTORS: Final[dict[str, Detector]] = {
    "private_key": private_key,
    "bearer_token": bearer_token,
    "secret_token": secret_token,
    "card_number": card_number,
    "national_id": national_id,
    "insurance_id": insurance_id,
    "medical_record_number": medical_record_number,
    "email": email,
    "phone": phone,
    "date_of_birth": date_of_birth,
    "person_name": person_name,
    "free_text": free_text,
    "base64_blob": base64_blob,
    "data_url": data_url,
}
# The digits and characters that a text needs before a detector can find anything. Two counts save most texts the slow
# patterns. A number that is too low costs time; one that is too high would miss something.
_NEEDED = {
    "private_key": (0, 21),
    "bearer_token": (0, 16),
    "secret_token": (0, 12),
    "card_number": (13, 13),
    "national_id": (6, 6),
    "insurance_id": (1, 4),
    "medical_record_number": (4, 4),
    "email": (0, 6),
    "phone": (7, 7),
    "date_of_birth": (1, 1),
    "base64_blob": (0, 64),
    "data_url": (0, 6),
}
Row = tuple[int, int, str, Detector]
_FIRST: Final[tuple[Row, ...]] = tuple(
    (*_NEEDED.get(name, (0, 0)), name, detector) for name, detector in DETECTORS.items()
)
_INSTEAD: Final[dict[str, Detector]] = {"free_text": free_text_in_words}
# What edition 2 added: more ways to break the old rules, and two new rules.
_LEARNED: Final[tuple[Row, ...]] = (
    (0, 16, "secret_token", vendor_token),
    (0, 10, "email", written_email),
    (0, 4, "embedded_document", embedded_document),
)
# These find nothing in a text without a telling word, and most texts have none.
_IN_WORDS: Final[tuple[Row, ...]] = (
    (4, 7, "medical_record_number", labels.labelled_record),
    (6, 9, "national_id", labels.labelled_national),
    (4, 9, "insurance_id", labels.labelled_insurance),
    (1, 5, "date_of_birth", labels.labelled_birth),
    (7, 10, "phone", labels.labelled_phone),
    (13, 16, "card_number", labels.labelled_card),
    (1, 11, "secret_token", labels.labelled_secret),
    (1, 14, "bearer_token", labels.labelled_bearer),
    (0, 6, "person_name", labels.labelled_name),
    (0, 6, "person_name", labels.name_pair),
    (0, 4, "clinical_phrase", clinical_phrase),
)
_KEPT: Final = tuple((few, short, name, _INSTEAD.get(name, trips)) for few, short, name, trips in _FIRST)
_PLAIN: Final = _KEPT + _LEARNED
_TELLING_TABLE: Final = _PLAIN + _IN_WORDS
# Encoded JSON is what cursors and tokens are made of; what it says is judged, that it is JSON is not.
_NOT_WHEN_DECODED: Final = frozenset(["embedded_document", "base64_blob"])
# A leak of these costs money or gives access at once, so no contract may switch them off.
ALWAYS_ON: Final = frozenset(["private_key", "bearer_token", "card_number"])
DETECTOR_NAMES: Final = ("forbidden_key", *DETECTORS, "embedded_document", "clinical_phrase")
# For what people write about the installation itself: titles of workflows, rules, documents. A workflow may be called
# "Chest pain triage", and a rule may contain JSON.
CONFIGURATION_RULES: Final = frozenset(DETECTOR_NAMES) - {"embedded_document", "clinical_phrase"}

# Hints that do not matter for a text that looks ordinary.
_HARMLESS = frozenset(["quantity", "role"])
# What most metadata looks like. A text that matches is not inspected further: every shape here is too short, too
# regular or has too few digits for a detector.
_ORDINARY = re.compile(
    r"(?!(?i:urn:)?(?i:mrn|dob|ssn|nin|bvn|pass|pwd|secret|api|tel))"  # labels: their detectors decide
    r"(?:urn:)?(?:[A-Za-z]{1,16}:){0,2}"
    r"[A-Za-z]{1,16}(?:[-_./][A-Za-z]{1,16}){0,5}(?:[-_./:]?v?[0-9]{1,5}(?:[-_.][0-9]{1,5})?)?"
    r"|(?:urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    r"|(?:sha256:)?[0-9a-f]{64}"
    r"|[12][0-9]{3}-[01][0-9]-[0-3][0-9](?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}"
)
# Opaque identifiers inside longer strings. Their groups of digits are random and would look like phone or card numbers.
_OPAQUE = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{2}-)?(?:"
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
    r"|[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
    r")(?![0-9A-Za-z])"
)


# Words that a text in words may contain only if every detector has looked at it.
_TELLING: Final = (
    GIVEN_NAMES
    | SURNAMES
    | CLINICAL.first_words
    | PERSONAL_NAME_OWNERS
    | LABEL_WORDS
    | {f"{owner}name" for owner in PERSONAL_NAME_OWNERS}
)
_TEXT_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_HEX_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_MIXED = re.compile(r"[A-Za-z]{12}")


def is_ordinary(text: str, hints: frozenset[str], edition: int = CURRENT) -> bool:
    """Whether the text has a shape in which no detector finds anything, under a key that hints at nothing."""
    if not hints <= _HARMLESS or _ORDINARY.fullmatch(text) is None:
        return False
    if edition == FIRST or text[0].isdigit():
        digest = None if edition == FIRST else _HEX_DIGEST.fullmatch(text)
        return digest is None or is_plain_hash(digest[1])
    digest = _HEX_DIGEST.fullmatch(text)
    if digest:
        return is_plain_hash(digest[1])
    # Twelve letters of both cases could be base64.
    return (text.islower() or _MIXED.search(text) is None) and not _has_telling_word(text)


def _has_telling_word(text: str) -> bool:
    """Whether it has a word that a detector waits for. Texts in other scripts are not judged here."""
    if not text.isascii():
        return True
    words = _TEXT_WORD.findall(text)
    return not _TELLING.isdisjoint(words if text.islower() else map(str.lower, words))


def tripped(subject: InspectedText, active: frozenset[str], edition: int = CURRENT) -> Sequence[str]:
    """Names of the active rules that this text breaks."""
    text = subject.text
    if is_ordinary(text, subject.hints, edition):
        return ()
    if edition == FIRST:
        return _search(subject, active, _FIRST)
    found = _search(subject, active, _table(text))
    if not text.isascii() and (plain := disguised(text)) is not None:
        found += _search(subject._replace(text=plain), active, _table(plain))
    if len(text) >= _ENCODED_FROM:
        active, form = active - _NOT_WHEN_DECODED, _INNER_FORM.get(subject.form, subject.form)
        # Not the digits of a UUID: some of those would read as six letters and signs.
        for inner in map(normalise, decoded(_OPAQUE.sub("~", text))):
            found += _search(InspectedText(inner, subject.hints, form), active, _table(inner))
    return found


def _table(text: str) -> Sequence[Row]:
    return _TELLING_TABLE if _has_telling_word(text) else _PLAIN


_ENCODED_FROM: Final = 8
# A sentence is welcome in a note; encoded, nobody who reads the note can read it.
_INNER_FORM: Final = {TextForm.NOTE: TextForm.VALUE}


def _search(subject: InspectedText, active: frozenset[str], table: Sequence[Row]) -> list[str]:
    text = subject.text
    if len(text) >= 36:
        subject = subject._replace(text=_OPAQUE.sub("~", text))
        text = subject.text
    digits, length = sum(map(text.count, "0123456789")), len(text)
    return [
        name
        for few, short, name, trips in table
        if digits >= few and length >= short and name in active and trips(subject)
    ]


__all__ = [
    "ALWAYS_ON",
    "CONFIGURATION_RULES",
    "DETECTORS",
    "DETECTOR_NAMES",
    "InspectedText",
    "TextForm",
    "is_ordinary",
    "tripped",
]
