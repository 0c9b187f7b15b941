"""Detectors of identifiers that are glued to their label: `patientName-Smith`, `mrn12345678`, `dob19800101`. What a
label names is found by another rule too, when it stands as a word of its own."""

import re
from itertools import pairwise
from typing import Final

from governance.boundary.rules import checksums
from governance.boundary.rules.detectors.subject import InspectedText, TextForm
from governance.boundary.rules.vocabulary import GIVEN_NAMES, PERSONAL_NAME_OWNERS, SURNAMES, TECHNICAL_WORDS

# `patientName` is read as `patient_Name`, as keys are.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTER = r"(?<![^\W\d_])"
_JOIN = r"[\"'\]]?[\s_.:=/#~|-]{0,3}[\"'\[]?"
_NUMBER = r"(?:_?(?:no|nr|num|number|id))?"


def _labelled(labels: str, value: str) -> re.Pattern[str]:
    """A label, at most three characters between, and the value. Every part is bounded, so the time is linear."""
    return re.compile(rf"(?i){_NO_LETTER}(?:{labels})(?P<join>{_JOIN})(?P<value>{value})")


_NAMES: Final = _labelled(
    rf"(?:{'|'.join(sorted(PERSONAL_NAME_OWNERS))})[\s_.-]?names?"
    r"|surname|nachname|vorname|familienname|apellidos?|prenom|cognome",
    r"[^\W\d_](?:[^\W\d_]|'){1,40}",
)
_ASSIGNS: Final = frozenset("=:")
_PEOPLE: Final = _labelled(r"patient|pt|mr|mrs|ms|dr|prof|herr|frau|sheikh", r"[^\W\d_][^\W\d_']{2,40}")
_RECORD: Final = _labelled(
    rf"mrn|medical_?record{_NUMBER}|hospital_?(?:no|number)|chart_?(?:no|number)|patient_?(?:no|nr|number)|recordnumber",
    r"[A-Z]{0,3}[-_ ]?[0-9]{2,4}-?[0-9]{2}",
)
_NATIONAL: Final = _labelled(
    rf"ssn|socialsecurity{_NUMBER}|social_security{_NUMBER}|national_?id{_NUMBER}|nin|bvn|passport{_NUMBER}|iqama"
    rf"|emirates_?id|civil_?id|nhs{_NUMBER}|tax_?id|aadhaar|pesel|nino|steuer_?id|codice_?fiscale",
    r"[A-Z]{0,3}(?:[-_. ]?[0-9]){6,14}",
)
_INSURANCE: Final = _labelled(
    r"insurance_?(?:id|no|nr|number|card)|policy_?(?:no|nr|number)|(?:member|subscriber)_?(?:id|no|nr|number)"
    rf"|medic(?:are|aid){_NUMBER}|health_?card{_NUMBER}",
    r"[A-Z]{0,4}[-_ ]?[0-9]{2,4}-?[0-9]{2}|[1-9][A-Z][A-Z0-9][0-9]-?[A-Z][A-Z0-9][0-9]",
)
_BIRTH: Final = _labelled(
    r"dob|date_?of_?birth|birth_?(?:date|day)|born(?:_?on)?|geburtsdatum|geb|fecha_?nacimiento|date_?naissance",
    r"(?:19|20)[0-9]{2}(?:[-_./]?[0-9]{2}){2}|[0-9]{1,2}[-_./]?[0-9]{2}[-_./]?(?:19|20)[0-9]{2}|[0-9]{6}(?![0-9])",
)
_YEAR: Final = _labelled(r"birth_?year|year_?of_?birth|yob", r"(?:19|20)[0-9]{2}(?![0-9])")
_AGE: Final = _labelled(r"(?:patient|person|subject)[_-]?age|age_?(?:in_?)?(?:years|yrs)", r"[0-9]{1,3}(?![0-9])")
_PHONE: Final = _labelled(
    rf"tel(?:ephone)?{_NUMBER}|phone{_NUMBER}|mobile_?(?:no|nr|number)|cell_?(?:no|number)|msisdn|whatsapp|fax{_NUMBER}",
    r"\+?[0-9](?:[ .()-]?[0-9]){6,14}(?![0-9A-Za-z])",
)
_CARD: Final = _labelled(rf"(?:card|pan|visa|mastercard|amex){_NUMBER}", r"[0-9](?:[ _-]?[0-9]){12,18}(?![0-9])")
_SECRET: Final = _labelled(
    r"password|passwd|pwd|passphrase|api_?key|access_?key|client_?secret|secret_?key|access_?token|auth_?token|secret",
    r"(?=[A-Za-z0-9+/_!@#$%^&*.]{0,63}[0-9])(?=[0-9+/_!@#$%^&*.]{0,63}[A-Za-z])[A-Za-z0-9+/_!@#$%^&*.]{8,64}",
)
_BEARER: Final = _labelled(
    r"bearer(?:_?token)?|authorization(?:[\s_:=-]{1,3}(?:token|digest|apikey|negotiate))?",
    r"(?=[A-Za-z_~+/=-]{0,63}[0-9])(?=[0-9_~+/=-]{0,63}[A-Za-z])[A-Za-z0-9._~+/=-]{8,64}",
)
_NOT_DIGIT = re.compile(r"[^0-9]")
# Dates of our time: `phone-20261116` is a build and not a number.
_DAY = re.compile(r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{0,6}")


def _split(text: str) -> str:
    return _CAMEL.sub("_", text)


def labelled_name(subject: InspectedText) -> bool:
    """`patientName-Smith`, `last_name=okafor`, `patient/Smith`, `DrOkonkwo`."""
    text = _split(subject.text)
    prose = subject.form is TextForm.NOTE
    if any(_is_name(match["join"], match["value"], prose=prose) for match in _NAMES.finditer(text)):
        return True
    return any(_is_known(match["value"]) for match in _PEOPLE.finditer(text))


def _is_name(join: str, value: str, *, prose: bool) -> bool:
    if value.lower() in TECHNICAL_WORDS:
        return False
    # "the patient name: unclear" is a sentence.
    if _is_known(value) or (not _ASSIGNS.isdisjoint(join) and (value[0].isupper() or not prose)):
        return True
    # `patientName-Zoraida`; but in `PatientNameChanged` the next word belongs to the label.
    return not _APART.isdisjoint(join) and value[0].isupper()


_APART: Final = frozenset("-./#~|")


def _is_known(word: str) -> bool:
    word = word.lower()
    return word in SURNAMES or word in GIVEN_NAMES


def name_pair(subject: InspectedText) -> bool:
    """A common given name next to a common family name, however they are joined: `jane.doe`, `SmithJohn`."""
    words = [word.lower() for word in _WORDS.findall(subject.text)]
    return any(_are_pair(first, second) for first, second in pairwise(words))


_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _are_pair(first: str, second: str) -> bool:
    return (first in GIVEN_NAMES and second in SURNAMES) or (first in SURNAMES and second in GIVEN_NAMES)


def labelled_record(subject: InspectedText) -> bool:
    return _RECORD.search(_split(subject.text)) is not None


def labelled_national(subject: InspectedText) -> bool:
    return any(not _is_day(match["value"]) for match in _NATIONAL.finditer(_split(subject.text)))


def labelled_insurance(subject: InspectedText) -> bool:
    return _INSURANCE.search(_split(subject.text)) is not None


def labelled_birth(subject: InspectedText) -> bool:
    text = _split(subject.text)
    return any(pattern.search(text) is not None for pattern in (_BIRTH, _YEAR, _AGE))


def labelled_phone(subject: InspectedText) -> bool:
    return any(not _is_day(match["value"]) for match in _PHONE.finditer(_split(subject.text)))


def labelled_card(subject: InspectedText) -> bool:
    numbers = (_NOT_DIGIT.sub("", match["value"]) for match in _CARD.finditer(_split(subject.text)))
    return any(checksums.luhn(number) for number in numbers)


def labelled_secret(subject: InspectedText) -> bool:
    return any(_looks_random(match["value"]) for match in _SECRET.finditer(subject.text))


def labelled_bearer(subject: InspectedText) -> bool:
    return any(_looks_random(match["value"]) for match in _BEARER.finditer(subject.text))


def _is_day(value: str) -> bool:
    return _DAY.fullmatch(_NOT_DIGIT.sub("", value)) is not None


def _looks_random(value: str) -> bool:
    """Letters and digits mixed, and neither a word with a number after it nor a hash."""
    if _HASH.fullmatch(value):
        return False
    return _WORD_AND_NUMBER.fullmatch(value) is None or _ODD_CASES.search(value) is not None


_WORD_AND_NUMBER = re.compile(r"[A-Za-z]+(?:[._/-][A-Za-z]+)*[._/-]?v?[0-9]{0,2}(?:[._/-]?[0-9]{1,4}){0,3}")
_ODD_CASES = re.compile(r"[a-z][A-Z]{2,}[0-9]{4}")
_HASH = re.compile(r"[0-9a-f]{32,64}")
