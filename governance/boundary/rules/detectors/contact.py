"""Detectors of e-mail addresses and phone numbers."""

import re

from governance.boundary.rules.detectors.subject import InspectedText, mentions

_DOMAIN = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_LOCAL_END = frozenset("._%+-'\"")

_GLUED_BEFORE, _GLUED_AFTER = r"(?<![0-9A-Za-z_./-])", r"(?![0-9A-Za-z_]|[-./][0-9A-Za-z])"
_INTERNATIONAL = re.compile(r"(?<![0-9A-Za-z])\+\(?[1-9](?:[ .\-()/]{0,3}[0-9]){6,14}(?![0-9])")
_NATIONAL = re.compile(
    _GLUED_BEFORE + r"(?:"
    r"00 ?[1-9][0-9]{0,2}(?:[ .-][0-9]{2,5}){2,5}"  # 00 44 20 7946 0958
    r"|(?:1[ .-])?\(?[2-9][0-9]{2}\)?[ .-]{1,2}[2-9][0-9]{2}[ .-][0-9]{4}"  # (415) 555-2671
    r"|\(?0[1-9][0-9]{0,4}\)?(?:[ ./-][0-9]{2,8}){1,5}"  # 020 7946 0958, 050 123 4567, 06 12 34 56 78
    r")" + _GLUED_AFTER
)
_LABELLED = re.compile(
    r"(?i:\b(?:tel|phone|telephone|mobile|cell|whatsapp|call(?:ed)?|fax|msisdn))[\s.:=#-]{1,4}(?:(?i:no|nr|number)[\s.:=#]{1,3})?"
    r"\+?[0-9](?:[ .\-()/]?[0-9]){6,14}(?![0-9])"
)
_LABELS = ("tel", "phone", "mobile", "cell", "whatsapp", "call", "fax", "msisdn")
_NOT_DIGIT = re.compile(r"[^0-9]")


def email(subject: InspectedText) -> bool:
    text = subject.text
    if "@" not in text:
        return False
    return any(_ends_local_part(text, match.start()) for match in _DOMAIN.finditer(text))


def _ends_local_part(text: str, at: int) -> bool:
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] in _LOCAL_END)


def phone(subject: InspectedText) -> bool:
    """Whether the text contains a phone number."""
    # Bare digits alone do not count: order numbers look the same. A plus sign, separators, a label or the key decides.
    text = subject.text
    if "phone" in subject.hints and 7 <= len(_NOT_DIGIT.sub("", text)) <= 15:
        return True
    if "+" in text and _INTERNATIONAL.search(text):
        return True
    if any(_is_national(match[0]) for match in _NATIONAL.finditer(text)):
        return True
    return mentions(text, _LABELS) and _LABELLED.search(text) is not None


def _is_national(match: str) -> bool:
    return 9 <= len(_NOT_DIGIT.sub("", match)) <= 15
