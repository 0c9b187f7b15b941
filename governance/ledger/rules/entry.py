"""The exact bytes that a ledger entry's hash covers, and canonical JSON (RFC 8785) for everything else that is hashed.
Pure: a verifier without a database computes the same."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from json import encoder
from json.encoder import encode_basestring as quoted
from typing import Any, Final, NamedTuple

import rfc8785

# RFC 8785 writes numbers as IEEE doubles. Beyond this, two integers would have the same text and the same hash.
_SAFE_INTEGER: Final = 2**53 - 1


def json_writer(*, ensure_ascii: bool = True, sort_keys: bool = False) -> Callable[[Any], str]:
    """A function that writes JSON like the standard library's encoder, in half the time for small values. It does not
    detect circular references."""
    # The standard encoder makes its inner C encoder anew for every value. Here it is made once. `c_make_encoder` is
    # private and missing in some Pythons: then the usual way is taken.
    usual = json.JSONEncoder(
        ensure_ascii=ensure_ascii, check_circular=False, sort_keys=sort_keys, separators=(",", ":")
    )
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:
        return usual.encode
    text = encoder.encode_basestring_ascii if ensure_ascii else encoder.encode_basestring
    inner = make(None, usual.default, text, None, ":", ",", sort_keys, False, True)
    return lambda value: "".join(inner(value, 0))


_encode = json_writer(ensure_ascii=False, sort_keys=True)


def canonical_bytes(value: Any) -> bytes:
    """Canonical JSON (RFC 8785). Raises rfc8785.CanonicalizationError for values that JSON cannot represent exactly
    (integers from 2^53, NaN)."""
    if _is_plain(value):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:
            pass  # half a surrogate pair: the reference implementation below raises its own error for it
    return rfc8785.dumps(value)


def canonical_sha256(value: Any) -> str:
    """Lower-case hex."""
    return sha256(canonical_bytes(value)).hexdigest()


def _is_plain(value: Any) -> bool:
    """Whether the standard library writes this value exactly as RFC 8785 does. That holds for nearly everything that we
    hash, and the standard library is several times as fast. A test compares the two."""
    # Not for fractions, whose digits differ, and not for keys beyond ASCII: RFC 8785 sorts them by UTF-16 units, Python
    # by code points.
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                return False
            if type(item) is not str and not _is_plain(item):
                return False
        return True
    if kind is list or kind is tuple:
        return all(type(item) is str or _is_plain(item) for item in value)
    if kind is int:
        return bool(-_SAFE_INTEGER <= value <= _SAFE_INTEGER)
    return kind is str or kind is bool or value is None


# By the number in an entry's column `format`. An entry of format 1 has one move. One of format 2 has the actions of the
# moves before the deciding one in `earlier`.
FORMATS: Final = {1: "holdpoint-ledger-v1", 2: "holdpoint-ledger-v2"}
FORMAT: Final = 2


def payload_hash(*, payload: Mapping[str, Any], nonce: bytes) -> bytes:
    """Salted with the nonce, so that a short payload cannot be guessed from its hash after it was erased."""
    return sha256(nonce + canonical_bytes(dict(payload))).digest()


class EntryText(NamedTuple):
    """An entry's header as text, in the form in which a query returns it: ids with hyphens, `at` in UTC with
    microseconds."""

    id: str
    organization_id: str | None
    action: str
    subject_type: str
    subject_id: str
    actor_kind: str
    actor_ref: str
    reason_code: str
    request_id: str
    trace_id: str
    at: str
    format: int
    earlier: Sequence[str] | None


def entry_hash_of_text(text: EntryText, *, payload_sha256: bytes) -> bytes:
    """SHA-256 over the canonical JSON of the header and the payload's hash. ValueError if no format has such a
    header."""
    # Without this check moves could be written into old entries: the hash of format 1 does not cover them.
    if text.format not in FORMATS or (text.format == 1 and text.earlier is not None):
        raise ValueError("not a header of a known format")
    # Written by hand, with the keys in canonical order: ten times as fast as `canonical_bytes`, and a check of the
    # record hashes millions of entries. A test compares the two.
    organization = f'"{text.organization_id}"' if text.organization_id else "null"
    earlier = f',"earlier":[{",".join(map(quoted, text.earlier or ()))}]' if text.format > 1 else ""
    written = (
        f'{{"action":{quoted(text.action)},"actor_kind":{quoted(text.actor_kind)},"actor_ref":{quoted(text.actor_ref)}'
        f',"at":"{text.at}"{earlier},"format":"{FORMATS[text.format]}","id":"{text.id}","organization":{organization}'
        f',"payload_sha256":"{payload_sha256.hex()}","reason_code":{quoted(text.reason_code)}'
        f',"request_id":{quoted(text.request_id)},"subject_id":"{text.subject_id}"'
        f',"subject_type":{quoted(text.subject_type)},"trace_id":{quoted(text.trace_id)}}}'
    )
    return sha256(written.encode()).digest()


# All entries of a transaction have the same moment; its text is made once.
_latest: tuple[datetime | None, str] = (None, "")


def moment_text(at: datetime) -> str:
    """UTC with microseconds, as the hash covers it."""
    # Replaced as a whole: with two variables, one thread could combine its moment with another thread's text.
    global _latest
    latest = _latest
    if latest[0] is not at:
        latest = _latest = (at, at.astimezone(UTC).isoformat(timespec="microseconds"))
    return latest[1]
