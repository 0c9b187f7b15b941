"""Detectors of encoded content: base64 or long hex, and data: URLs."""

import base64
import binascii
import re

from governance.boundary.rules.detectors.credentials import entropy
from governance.boundary.rules.detectors.subject import InspectedText

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{64,}+={0,2}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_DATA_URL = re.compile(r"(?i:data):[\w/+.;=-]{0,120},")
# SHA-512 in hex. Hashes are welcome; longer hex is content.
_LONGEST_DIGEST = 128
_RANDOM_BITS = 4.5
_SAMPLE = 512


def base64_blob(subject: InspectedText) -> bool:
    return any(_is_blob(match[0]) for match in _RUN.finditer(subject.text))


def _is_blob(run: str) -> bool:
    if _HEX.fullmatch(run):
        return len(run) > _LONGEST_DIGEST
    if run.lower() == run or run.upper() == run:
        return False
    sample = run.rstrip("=")[:_SAMPLE].replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(sample[: len(sample) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return False
    return entropy(sample) >= _RANDOM_BITS or _is_text(decoded)


def _is_text(decoded: bytes) -> bool:
    return sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in decoded) >= 0.95 * len(decoded)


def data_url(subject: InspectedText) -> bool:
    return ":" in subject.text and _DATA_URL.search(subject.text) is not None
