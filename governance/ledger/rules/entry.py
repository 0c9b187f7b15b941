"""The exact bytes that a ledger entry's hash covers, how moves are joined into one entry, and canonical JSON (RFC 8785)
for everything else that is hashed. Pure: a verifier without a database computes the same."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from json import encoder
from json.encoder import encode_basestring as quoted
from operator import attrgetter
from secrets import token_bytes
from typing import Any, Final, NamedTuple
from uuid import UUID

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
    format: int = 1
    earlier: Sequence[str] | None = None


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


# Only moves of these may share an entry. All others are looked up by their action in SQL (keys, epochs, erasures), so
# each of them is the action of an entry of its own.
JOINING: Final = ("attempt.", "review.", "workflow.")
# Keys of a payload that holds the facts of several moves.
MOVES: Final = "moves"
AS_BEFORE: Final = "as_before"


def may_join(action: str) -> bool:
    """Whether an entry can hold this move among others."""
    return action.startswith(JOINING)


def facts_joined(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The payload of an entry with several moves. A fact that the latest earlier move with this name says too is only
    named: hashes and ids are most of an entry, and moves of one transaction repeat them."""
    told: dict[str, Any] = {}
    moves = []
    for one in facts:
        if AS_BEFORE in one:
            raise ValueError(f"a fact cannot be called {AS_BEFORE}")
        repeated = [name for name, value in one.items() if name in told and _same(told[name], value)]
        said = {name: value for name, value in one.items() if name not in repeated}
        moves.append(said | {AS_BEFORE: repeated} if repeated else said)
        told.update(one)
    return {MOVES: moves}


def _same(one: Any, other: Any) -> bool:
    # Of the same type too: for Python 1, 1.0 and True are equal, as JSON they are not.
    return type(one) is type(other) and isinstance(one, str | int) and bool(one == other)


def entries_joined(rows: Sequence[Any]) -> list[Any]:
    """One entry for moves of the same subject and actor at the same moment that come one after the other, each with
    its hashes. The only place where moves are joined: `rows` are the unsaved entries of one statement."""
    joined: list[list[Any]] = []
    latest: dict[UUID, list[Any]] = {}
    for row in rows:
        together = latest.get(row.subject_id)
        if together is None or not _goes_on(together[-1], row):
            together = latest[row.subject_id] = []
            joined.append(together)
        together.append(row)
    return [_finished(together) for together in joined]


# Of an entry's columns, those that all its moves share.
_shared = attrgetter(
    *("organization_id", "subject_type", "actor_kind", "actor_ref", "at", "request_id", "trace_id", "format")
)


def _goes_on(before: Any, row: Any) -> bool:
    """Whether a row is one more move of the entry that `before` is in."""
    # A reason code belongs to the deciding move, which is the last one: the code's index and its readers find it in
    # the entry's own column.
    return (
        not before.sha256
        and not row.sha256
        and before.reason_code == ""
        and may_join(before.action)
        and may_join(row.action)
        and _shared(before) == _shared(row)
    )


def _finished(together: list[Any]) -> Any:
    """The one entry of these moves. It has the id of the first: readers order entries by id."""
    entry, last = together[0], together[-1]
    if entry.sha256:  # a statement that failed is sent again
        return entry
    if len(together) > 1:
        entry.earlier = [row.action for row in together[:-1]]
        entry.payload = facts_joined([row.payload for row in together])
        entry.action, entry.reason_code = last.action, last.reason_code
    # The nonce salts the payload's hash: without it a short payload could be guessed from the hash after its erasure.
    entry.nonce = token_bytes(16)
    entry.payload_sha256 = payload_hash(payload=entry.payload, nonce=entry.nonce)
    text = EntryText(
        id=str(entry.id),
        organization_id=str(entry.organization_id) if entry.organization_id else None,
        action=entry.action,
        subject_type=entry.subject_type,
        subject_id=str(entry.subject_id),
        actor_kind=entry.actor_kind,
        actor_ref=entry.actor_ref,
        reason_code=entry.reason_code,
        request_id=entry.request_id,
        trace_id=entry.trace_id,
        at=moment_text(entry.at),
        format=entry.format,
        earlier=entry.earlier,
    )
    entry.sha256 = entry_hash_of_text(text, payload_sha256=entry.payload_sha256)
    return entry
