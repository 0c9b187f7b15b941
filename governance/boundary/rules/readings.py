"""Other readings of a text: what stands in it for a reader who decodes it. Each is judged by the same detectors."""

import base64
import binascii
import html
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from governance.boundary.rules.lookalikes import without_disguise

# Shorter ones hold no address, number or name that a detector would find.
_SHORTEST: Final = 12
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,}+={0,2}")
_PART = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{12,}+={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?([0-9a-fA-F]{12,}+)(?![0-9A-Za-z])")
_SPACED_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{2}(?:[ :-](?:0x)?[0-9a-fA-F]{2}){5,}")
_NOT_HEX = re.compile(r"0x|[^0-9a-fA-F]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_WEB_ALPHABET = str.maketrans("-_", "+/")
# Somebody encodes twice by mistake (a cursor inside a link), hardly ever three times.
DEEPEST: Final = 3


def disguised(text: str) -> str | None:
    """The text without look-alike letters, if it has any."""
    plain = without_disguise(text)
    return plain if plain != text else None


def decoded(text: str, *, depth: int = DEEPEST) -> Iterator[str]:
    """What is encoded in the text: escapes of links, pages and programs, base64 and hex, also one in the other."""
    # Every decoding is shorter than what it decodes, and only readable results go on, so the work stays linear.
    for inner in {*_unescaped(text), *_from_base64(text), *_from_hex(text)}:
        yield inner
        if depth > 1:
            yield from decoded(inner, depth=depth - 1)


def _unescaped(text: str) -> Iterator[str]:
    plain = text
    if "%" in plain:
        plain = unquote(plain)
    if "&" in plain and ";" in plain:
        plain = html.unescape(plain)
    if "\\" in plain:
        plain = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), plain)
    if plain != text:
        yield plain


def _from_base64(text: str) -> Iterator[str]:
    for run in _BASE64.finditer(text):
        yield from _base64(run[0])
        # Base64 after a prefix: `ref-SmFuZSBEb2U`.
        if "-" in run[0] or "_" in run[0] or "/" in run[0]:
            for part in _PART.finditer(run[0]):
                yield from _base64(part[0])


def _base64(run: str) -> Iterator[str]:
    body = run.rstrip("=").translate(_WEB_ALPHABET)
    # Encoded text has letters of both cases. Numbers, hashes and words in one case are not tried.
    if len(body) % 4 == 1 or body == body.lower() or body == body.upper():
        return
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return
    yield from _readable(raw)


def _from_hex(text: str) -> Iterator[str]:
    for match in _HEX.finditer(text):
        if len(match[1]) % 2 == 0:
            yield from _readable(bytes.fromhex(match[1]))
    if _SPACED_HEX.fullmatch(text):
        yield from _readable(bytes.fromhex(_NOT_HEX.sub("", text)))


def _readable(raw: bytes) -> Iterator[str]:
    """The bytes as text, if they are text. Random bytes practically never are."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return
    if all(char.isprintable() or char in "\t\r\n" for char in text):
        yield text


def is_plain_hash(digits: str) -> bool:
    """Whether these hex digits are no text in ASCII. One hash in four thousand million is."""
    return not bytes.fromhex(digits).isascii()
