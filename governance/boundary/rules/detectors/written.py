"""Detectors of mail addresses that are written out, of documents inside a string, and of more vendors' tokens."""

import re
from typing import Final

from governance.boundary.rules.detectors.subject import InspectedText, mentions
from governance.boundary.rules.vocabulary import GIVEN_NAMES, TOP_DOMAINS

_LOCAL = r"(?<![\w.])[\w.+%'-]{1,64}?"
_AT = r"(?:[\s_]{1,3}at[\s_]{1,3}|\s{0,2}[\[({<]\s?(?:at|@)\s?[\])}>]\s{0,2}|-at-|\s{1,3}@\s{0,3}|\s{0,3}@\s{1,3})"
_DOT = r"(?:[\s_]{1,3}dot[\s_]{1,3}|\s{0,2}[\[({<]\s?(?:dot|\.)\s?[\])}>]\s{0,2}|-dot-)"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,40}?[a-z0-9])?"
# `jane at example dot org`: the dots are words. `jane (at) example.org`: the sign is in brackets.
_ALL_WORDS: Final = re.compile(rf"(?i){_AT}{_LABEL}(?:(?:{_DOT}|\.){_LABEL}){{0,3}}{_DOT}(?P<top>[a-z]{{2,24}})\b")
_BRACKETS: Final = re.compile(
    rf"(?i)\w\s{{0,2}}[\[({{<]\s?(?:at|@)\s?[\])}}>]\s{{0,2}}{_LABEL}(?:\.{_LABEL}){{0,3}}\.(?P<top>[a-z]{{2,24}})\b"
)
_SPACED: Final = re.compile(
    rf"(?i)(?P<local>[\w.+%'-]{{1,64}})(?<![.])(?:\s{{1,3}}(?:at|@)\s{{1,3}}|@\s{{1,3}}|\s{{1,3}}@){_LABEL}(?:\s?\.\s?{_LABEL}){{0,3}}"
    r"\s?\.\s?(?P<top>[a-z]{2,24})\b"
)
_NAME_PART = re.compile(r"[a-z]+")


def written_email(subject: InspectedText) -> bool:
    """`name at example dot org`, `name [at] example.org`, `name @ example.org`."""
    text = subject.text
    if not mentions(text, ("at", "@")):
        return False
    if any(_is_top(match) for pattern in (_ALL_WORDS, _BRACKETS) for match in pattern.finditer(text)):
        return True
    # "jane.doe at example.org" is an address, "deployed at app.example.org" is not.
    return any(_is_top(match) and _is_person(match) for match in _SPACED.finditer(text))


def _is_top(match: re.Match[str]) -> bool:
    return match["top"].lower() in TOP_DOMAINS


def _is_person(match: re.Match[str]) -> bool:
    local = match["local"].lower()
    return "@" in match[0] or "." in local or not GIVEN_NAMES.isdisjoint(_NAME_PART.findall(local))


_JSON: Final = re.compile(
    r"\{\s{0,8}\\?[\"'][^\"'\\{}]{1,64}\\?[\"']\s{0,8}:"  # {"key": and its escaped and Python forms
    r"|\{\s{0,8}[A-Za-z_]\w{0,40}\s{0,8}:\s{0,8}\\?[\"']"  # {key: "…
    r"|\[\s{0,8}\\?\"[^\"\\]{0,200}\\?\"\s{0,8},"  # ["…",
)
_XML: Final = re.compile(
    r"</[A-Za-z_][\w:.-]{0,64}\s{0,3}>|<\?xml|<!(?:DOCTYPE|\[CDATA|--)"
    r"|<[A-Za-z_][\w:.-]{0,64}(?:\s{1,3}[\w:.-]{1,64}\s?=\s?[\"'][^\"'<>]{0,200}[\"']){1,8}\s{0,3}/?>"
    r"|<[A-Za-z_][\w:.-]{0,64}\s{0,3}/>"
)
# Segments of HL7 and of the claims of insurers.
_SEGMENT: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:MSH|PID|PV1|OBX|OBR|NK1|IN1|DG1|AL1|ORC|GT1)\|[^|]{0,200}\|"
    r"|(?<![A-Za-z0-9])(?:ISA|NM1|CLM|SBR|DMG|HI)\*[^*]{0,80}\*[^*]{0,80}\*"
    r"|(?<![A-Za-z0-9])(?:BEGIN|END):V(?:CARD|CALENDAR|EVENT)"
)


def embedded_document(subject: InspectedText) -> bool:
    """JSON, XML, or a segment of a clinical or insurance message inside a string."""
    text = subject.text
    if ("{" in text or "[" in text) and _JSON.search(text):
        return True
    if "<" in text and _XML.search(text):
        return True
    return ("|" in text or "*" in text or ":V" in text) and _SEGMENT.search(text) is not None


_MORE_VENDORS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"GOCSPX-[A-Za-z0-9_-]{20}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{24}|dckr_pat_[A-Za-z0-9_-]{20}|glrt-[A-Za-z0-9_-]{16}"
    r"|lin_api_[A-Za-z0-9]{20}|figd_[A-Za-z0-9_-]{20}|ATATT3x[A-Za-z0-9_=-]{20}|PMAK-[a-f0-9]{20}|sq0(?:atp|csp)-[\w-]{20}"
    r"|EAACEdEose0cBA[A-Za-z0-9]{8}|gsk_[A-Za-z0-9]{20}|xai-[A-Za-z0-9]{20}|AC[0-9a-f]{32}:[0-9a-f]{16}"
    r"|key-[0-9a-f]{32}(?![0-9a-f])|T[A-Z0-9]{8,10}/B[A-Z0-9]{8,10}/[A-Za-z0-9]{20}"
    r")"
)


def vendor_token(subject: InspectedText) -> bool:
    return _MORE_VENDORS.search(subject.text) is not None
