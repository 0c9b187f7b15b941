"""JSON with limits, checked before and while parsing: size, depth, duplicate keys, and values that cannot be stored."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from reasoncodes.base.errors import BodyTooDeep, BodyTooLarge, InvalidInput, LengthRequired

# Requests carry references and hashes, never payloads. A larger body would cost memory in every thread.
BODY_LIMIT_BYTES = 64 * 1024
# Deeper JSON makes every recursive check slow, and in the end a RecursionError.
JSON_DEPTH_LIMIT = 8
# A contract carries the JSON Schema of its metadata. Each level of metadata is two of schema, and it stands four deep.
DOCUMENT_DEPTH_LIMIT = 32
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
# Only a body with such an escape can contain NUL or half a surrogate pair, so only it is checked a second time.
ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def check_length(headers: Mapping[str, Any]) -> None:
    """Checks the headers in a WSGI environment before the first byte is read: a body that is too long or of unknown
    length stays unread."""
    declared = headers.get("CONTENT_LENGTH") or ""
    if not declared and "chunked" in str(headers.get("HTTP_TRANSFER_ENCODING", "")).lower():
        raise LengthRequired
    if declared.isdigit() and int(declared) > BODY_LIMIT_BYTES:
        raise BodyTooLarge


def parse_json(raw: bytes, *, depth_limit: int = JSON_DEPTH_LIMIT) -> Any:
    """The value, or a refusal that repeats nothing of it."""
    if len(raw) > BODY_LIMIT_BYTES:
        raise BodyTooLarge
    check_depth(raw, depth_limit)
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
        if ESCAPE.search(raw):
            _check_storable(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The body is not valid JSON.") from error
    return value


def check_depth(raw: bytes, limit: int = JSON_DEPTH_LIMIT) -> None:
    """Counts brackets outside strings in one pass, so that a deep value is never built."""
    # Most bodies have few brackets and need no look at their strings.
    if raw.count(b"[") + raw.count(b"{") <= limit:
        return
    depth = 0
    for bracket in BRACKET.findall(STRING.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            raise BodyTooDeep


def _refuse(_: str) -> Any:
    raise ValueError("NaN and Infinity are not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # Python reads 1e999 as infinity, and would write it as text that is not JSON
        raise ValueError("the number is out of range")
    return number


def _check_storable(value: Any) -> None:
    """Half of a surrogate pair cannot be written as UTF-8, and PostgreSQL cannot store NUL."""
    if "\\u0000" in json.dumps(value).replace("\\\\", ""):
        raise ValueError("NUL cannot be stored")
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses duplicate keys: two readers could take different values, and so see two different requests."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value
