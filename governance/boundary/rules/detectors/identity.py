"""Detectors of numbers that identify a person: payment cards, national and tax numbers, insurance and record numbers.
Check digits must be right; a number without them is found only by its shape, its key or a label."""

import re
from collections.abc import Callable

from governance.boundary.rules import checksums
from governance.boundary.rules.detectors.subject import InspectedText, mentions

Check = Callable[[str], bool]

_EDGE, _END = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_GROUP = re.compile(r"[0-9]+")
_GROUP_GAPS = frozenset([" ", "-", ".", "  "])
_CARD_PREFIX = re.compile(r"4|5[0-8]|3[0-9]|6[0-9]|2(?:2[0-9]|[3-6]|7[01]|720)|81|9792")

# Shapes that are enough by themselves, with their check digits where they have some.
_SHAPED = re.compile(
    _EDGE + r"(?:"
    r"(?P<ssn>(?!000|666)[0-9]{3}(?P<s>[- ])(?!00)[0-9]{2}(?P=s)(?!0000)[0-9]{4})"
    r"|(?P<emirates>784[- ]?(?:19|20)[0-9]{2}[- ]?[0-9]{7}[- ]?[0-9])"
    r"|(?P<ghana>(?i:GHA)-?[0-9]{9}-?[0-9])"
    r"|(?P<rwanda>[123] ?(?:19|20)[0-9]{2} ?[78] ?[0-9]{7} ?[0-9] ?[0-9]{2})"
    r"|(?P<kra>[AP][0-9]{9}[A-Z])"
    r"|(?P<nhs>[0-9]{3}[ -][0-9]{3}[ -][0-9]{4})"
    r"|(?P<nino>[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D])"
    r"|(?P<german>[1-9][0-9] [0-9]{3} [0-9]{3} [0-9]{3})"
    r"|(?P<french>[1-478] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[ABab]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2})"
    r"|(?P<spanish>(?:[XYZ]-?[0-9]{7}|[0-9]{8})-?[A-Z])"
    r"|(?P<italian>(?i:[A-Z]{6}[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{3}[A-Z]))"
    r"|(?P<belgian>[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2})"
    r"|(?P<swedish>(?:19|20)?[0-9]{6}[-+][0-9]{4})"
    r"|(?P<bare>[0-9]{10,16})"
    r")" + _END
)
_CHECKS: dict[str, Check] = {
    "nhs": checksums.nhs_number,
    "german": checksums.german_tax_id,
    "french": checksums.french_nir,
    "spanish": checksums.spanish_id,
    "italian": checksums.italian_code,
    "belgian": checksums.belgian_number,
    "swedish": checksums.swedish_number,
}
_BARE_CHECKS: dict[int, tuple[Check, ...]] = {
    10: (checksums.saudi_id, checksums.nhs_number),
    11: (checksums.german_tax_id, checksums.polish_pesel),
    12: (checksums.kuwait_civil_id,),
    15: (checksums.emirates_id, checksums.french_nir),
    16: (checksums.rwanda_id,),
}
_SEPARATORS = re.compile(r"[ .+-]")
# With one check digit, one in ten order numbers would be found too. So these count only as a value or word of their
# own.
_WEAK_SHAPES = frozenset(["swedish"])
_WEAK_LENGTHS = frozenset([10, 11])
_OWNER_BEFORE = re.compile(r"(?i:patient|person|citizen|resident|national(?:[-_]?id)?|nid|iqama|nhs)[-_/:.=]$")
_NUMBER_WORD = r"(?i:[\s.:=#/_-]{1,4}(?:no|nr|number)?[\s.:=#]{0,3})"
_LABELLED_ID = re.compile(
    r"(?i:\b(?:ssn|social security|(?:national|civil|emirates) id|id card|nin|bvn|iqama|passport"
    + r"|nhs|kra pin))"
    + _NUMBER_WORD
    + r"(?=[A-Z0-9 -]{0,4}[0-9]{3})[A-Z0-9](?:[ -]?[A-Z0-9]){5}"
)
_ID_LABELS = ("ssn", "social security", " id", "id card", "nin", "bvn", "iqama", "passport", "nhs", "kra")
_INSURANCE_LABELS = ("insurance", "policy", "member", "subscriber", "medicare", "medicaid")
_RECORD_LABELS = ("mrn", "medical record", "hospital no", "chart no")
_L = "[AC-HJKMNP-RT-Yac-hjkmnp-rt-y]"  # the letters a Medicare identifier uses
_A = "[0-9AC-HJKMNP-RT-Yac-hjkmnp-rt-y]"
_INSURANCE = re.compile(
    rf"{_EDGE}(?:(?P<mbi>[1-9]{_L}{_A}[0-9]-?{_L}{_A}[0-9]-?{_L}{_L}[0-9][0-9])"
    rf"|(?P<kvnr>[A-Z][0-9]{{9}})){_END}"
)
_LABELLED_INSURANCE = re.compile(
    r"(?i:\b(?:insurance|policy|member|subscriber|medicare|medicaid)[\s_-]{0,2}(?:id|no|nr|number|card))"
    r"[\s.:=#-]{1,4}(?=[A-Za-z-]{0,8}[0-9])[A-Za-z0-9-]{5}"
)
_LABELLED_RECORD = re.compile(
    r"(?i:\b(?:mrn|medical record|hospital no|chart no))" + _NUMBER_WORD + r"[A-Z]{0,4}-?[0-9]{4}"
)
_IDENTIFIER_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./-]{3,39}")
_DIGITS = re.compile(r"[0-9]")


def card_number(subject: InspectedText) -> bool:
    """Whether the text contains 13 to 19 digits, together or in groups, with a known issuer prefix and a right Luhn
    digit."""
    text = subject.text
    groups = [match.span() for match in _GROUP.finditer(text)]
    return any(_card_from(text, groups, first) for first in range(len(groups)))


def _card_from(text: str, groups: list[tuple[int, int]], first: int) -> bool:
    """Tries this group of digits alone, then with up to four that follow. Starting at each group, so that a date before
    the card does not hide it."""
    start, end = groups[first]
    size = end - start
    if size > 19 or (start and text[start - 1].isalnum()) or (size < 13 and size not in (4, 6)):
        return False
    digits = text[start:end]
    if _is_card(digits, text, end):
        return True
    for following, stop in groups[first + 1 : first + 5]:
        if text[end:following] not in _GROUP_GAPS or not (stop - following <= 7 or size == 6):
            return False
        end, digits = stop, digits + text[following:stop]
        if _is_card(digits, text, end):
            return True
    return False


def _is_card(digits: str, text: str, end: int) -> bool:
    if not 13 <= len(digits) <= 19 or text[end : end + 1].isalnum():
        return False
    return _CARD_PREFIX.match(digits) is not None and checksums.luhn(digits)


def national_id(subject: InspectedText) -> bool:
    text = subject.text
    if "national" in subject.hints and _is_identifier(text, digits=6):
        return True
    quantity = "quantity" in subject.hints
    if any(_is_national(match, quantity=quantity) for match in _SHAPED.finditer(text)):
        return True
    return mentions(text, _ID_LABELS) and _LABELLED_ID.search(text) is not None


def _is_national(match: re.Match[str], *, quantity: bool) -> bool:
    kind = match.lastgroup or ""
    number = _SEPARATORS.sub("", match[0]).upper()
    if kind == "bare":
        if len(number) in _WEAK_LENGTHS and (quantity or not _stands_alone(match)):
            return False
        return any(check(number) for check in _BARE_CHECKS.get(len(number), ()))
    if kind in _WEAK_SHAPES and not _stands_alone(match):
        return False
    check = _CHECKS.get(kind)
    return check is None or check(number)


def _stands_alone(match: re.Match[str]) -> bool:
    """Whether the match is the whole value, a word of its own, or directly after a word for a person:
    `Patient/1089…`."""
    text, (start, end) = match.string, match.span()
    if text[end : end + 1].strip(" ,;.)\n\t"):
        return False
    before = text[max(0, start - 24) : start]
    return not before or before[-1] in " =(\n\t," or _OWNER_BEFORE.search(before) is not None


def _is_identifier(text: str, *, digits: int) -> bool:
    return _IDENTIFIER_VALUE.fullmatch(text) is not None and len(_DIGITS.findall(text)) >= digits


def insurance_id(subject: InspectedText) -> bool:
    text = subject.text
    if "insurance" in subject.hints and _is_identifier(text, digits=4):
        return True
    for match in _INSURANCE.finditer(text):
        if match.lastgroup == "mbi" or checksums.german_insurance_number(match[0]):
            return True
    return mentions(text, _INSURANCE_LABELS) and _LABELLED_INSURANCE.search(text) is not None


def medical_record_number(subject: InspectedText) -> bool:
    if "record" in subject.hints and _is_identifier(subject.text, digits=4):
        return True
    return mentions(subject.text, _RECORD_LABELS) and _LABELLED_RECORD.search(subject.text) is not None
