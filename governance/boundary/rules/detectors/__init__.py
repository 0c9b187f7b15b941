"""The detectors: one function per rule, which says whether a normalized text breaks it. They return yes or no, never a
part of the text."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from governance.boundary.rules.detectors.blobs import base64_blob, data_url
from governance.boundary.rules.detectors.contact import email, phone
from governance.boundary.rules.detectors.credentials import bearer_token, private_key, secret_token
from governance.boundary.rules.detectors.identity import card_number, insurance_id, medical_record_number, national_id
from governance.boundary.rules.detectors.person import date_of_birth, person_name
from governance.boundary.rules.detectors.prose import free_text
from governance.boundary.rules.detectors.subject import InspectedText, TextForm

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
_TABLE = tuple((*_NEEDED.get(name, (0, 0)), name, detector) for name, detector in DETECTORS.items())
# A leak of these costs money or gives access at once, so no contract may switch them off.
ALWAYS_ON: Final = frozenset(["private_key", "bearer_token", "card_number"])
DETECTOR_NAMES: Final = ("forbidden_key", *DETECTORS)

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


def is_ordinary(text: str, hints: frozenset[str]) -> bool:
    """Whether the text has a shape in which no detector finds anything, under a key that hints at nothing."""
    return hints <= _HARMLESS and _ORDINARY.fullmatch(text) is not None


def tripped(subject: InspectedText, active: frozenset[str]) -> Sequence[str]:
    """Names of the active rules that this text breaks."""
    text = subject.text
    if is_ordinary(text, subject.hints):
        return ()
    if len(text) >= 36:
        subject = subject._replace(text=_OPAQUE.sub("~", text))
        text = subject.text
    digits, length = sum(map(text.count, "0123456789")), len(text)
    return [
        name
        for few, short, name, trips in _TABLE
        if digits >= few and length >= short and name in active and trips(subject)
    ]


__all__ = ["ALWAYS_ON", "DETECTORS", "DETECTOR_NAMES", "InspectedText", "TextForm", "is_ordinary", "tripped"]
