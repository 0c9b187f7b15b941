#!/usr/bin/env python3
"""Checks a Holdpoint evidence bundle without Holdpoint: one file, Python 3.9 or newer, and `cryptography`.

    holdpoint-verify bundle.zip [--public-key FILE_OR_TEXT | --keys holdpoint-keys.json] [--witness-key FILE_OR_TEXT]

With a key that you got on another way it says `authentic`: exit code 0. Without one it can only say `consistent, but
whose is unknown`: exit code 3, because a forger signs with a key of their own. 1: not valid; 2: it cannot be checked.
The format is described in Holdpoint's docs/evidence.md. Holdpoint writes bundles with the functions of this same file.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import math
import re
import struct
import sys
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

FORMAT, FORMAT_1 = "holdpoint-evidence-v2", "holdpoint-evidence-v1"
# An entry of the first format does not name it, and has one move. One of the second has the actions of the moves before
# the deciding one in `earlier`, and the facts of all of them in the payload.
ENTRY_V1, ENTRY_V2 = ("holdpoint-ledger-v1", "holdpoint-ledger-v2")
ANCHOR = "evidence.collected"
# What was frozen at one moment and whose hashes stand in one ledger entry, the anchor.
ROWS = (
    "costs.json",
    "decisions.json",
    "envelope.json",
    "events.json",
    "instance.json",
    "intents.json",
    "interventions.json",
    "people.json",
    "quarantine.json",
    "receipts.json",
    "reviews.json",
    "snapshots.json",
    "steps.json",
    "transitions.json",
    "votes.json",
)
# The rows as the database bound them, and the ledger entries about something else that carry their digests.
IMAGES, CARRIERS = "images.json", "ledger/carriers.json"
CONTENT_1 = (*ROWS, "report.html", "verify.py")
CONTENT = (*CONTENT_1, IMAGES)
ENTRIES, CHECKPOINT, KEY = "ledger/entries.json", "ledger/checkpoint.txt", "ledger/public-key.txt"
MANIFEST = "manifest.json"
NAMES_1 = (MANIFEST, *sorted((*CONTENT_1, ENTRIES, CHECKPOINT, KEY)))
NAMES = (MANIFEST, *sorted((*CONTENT, ENTRIES, CARRIERS, CHECKPOINT, KEY)))
HEADER = (
    "id",
    "organization",
    "action",
    "subject_type",
    "subject_id",
    "actor_kind",
    "actor_ref",
    "reason_code",
    "request_id",
    "trace_id",
    "at",
)
ACTIONS_INTO = {
    "deduplicated": {"attempt.deduplicated"},
    "review-required": {"attempt.held"},
    "approved-for-execution": {"attempt.approved"},
    "preflight-denied": {"attempt.denied", "attempt.cancelled"},
    "completed": {"attempt.completed"},
    "failed-quarantined": {"attempt.quarantined"},
}
MOVES = frozenset(action for actions in ACTIONS_INTO.values() for action in actions)
KEYS_FORMAT = "holdpoint-keys-v1"
# In the copy that lies in a bundle this is True.
IS_COPY = False
COPY_NOTE = (
    "This verifier came in the bundle itself, for convenience. Whoever could forge the bundle could forge it too: "
    "take the published one (holdpoint-verify, from Holdpoint's sdk)."
)


def is_old(files: Mapping[str, bytes]) -> bool:
    """Format 1: made before rows were bound to the ledger."""
    return IMAGES not in files and CARRIERS not in files


def copy_source(source: str) -> str:
    """The verifier as it is put into bundles: it says at its top and in its output what it is."""
    first, _, rest = source.partition("\n")
    note = "\n".join(f"# {line}" for line in COPY_NOTE.split(": "))
    return f"{first}\n{note}\n{rest}".replace("\nIS_COPY = False\n", "\nIS_COPY = True\n")


class Unusable(Exception):
    """It cannot be checked at all: no such file, no key, no library."""


class Malformed(ValueError):
    """Not what the format says; the message says in which way."""


# -- canonical JSON (RFC 8785) ---------------------------------------------------------------------------------------
def canonical(value: Any) -> bytes:
    """The one way to write a value: sorted keys, no spaces, shortest numbers."""
    return _text(value).encode("utf-8")


def _text(value: Any) -> str:
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) < 2**53:
        return str(value)
    if isinstance(value, (int, float)):
        return _number(float(value))
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_text(value[key])}" for key in keys) + "}"
    raise Malformed("a value that JSON does not have")


def _number(value: float) -> str:
    """As ECMAScript writes it: Python's shortest digits, the point and the exponent placed differently."""
    if not math.isfinite(value):
        raise Malformed("a number that JSON does not have")
    if value == 0:
        return "0"
    sign, shown, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, shown)).rstrip("0")
    point = len(shown) + int(exponent)  # where the decimal point stands, counted from the first digit
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        fraction = "." + digits[1:] if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return ("-" if sign else "") + text


def read_canonical_json(data: bytes) -> Any:
    """Only what is written canonically: no second spelling, no key twice."""
    try:
        value = json.loads(data.decode("utf-8"))
        again = canonical(value)
    except (ValueError, RecursionError, InvalidOperation) as error:
        raise Malformed("it is not JSON") from error
    if again != data:
        raise Malformed("it is not canonical JSON")
    return value


# -- the zip: stored, fixed times, one possible sequence of bytes -----------------------------------------------------
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION, _MADE_BY, _DATE, _MODE = 20, 0x0314, 0x21, 0o100644 << 16
_MOST = 2**32 - 2


def zip_write(files: Mapping[str, bytes]) -> bytes:
    """The same files in the same order give the same bytes, on every machine and in every year."""
    body, directory = [], []
    offset = 0
    for name, data in files.items():
        encoded = name.encode("ascii")
        shared = struct.pack("<HHHHIIIHH", 0, 0, 0, _DATE, zlib.crc32(data), len(data), len(data), len(encoded), 0)
        body += [_LOCAL, struct.pack("<H", _VERSION), shared, encoded, data]
        directory += [_CENTRAL, struct.pack("<HH", _MADE_BY, _VERSION), shared]
        directory += [struct.pack("<HHHII", 0, 0, 0, _MODE, offset), encoded]
        offset += 30 + len(encoded) + len(data)
    listed = b"".join(directory)
    if offset + len(listed) > _MOST or len(files) > 65_000:
        raise Malformed("too large for one bundle")
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(listed), offset, 0)
    return b"".join([*body, listed, _END, end])


def zip_read(data: bytes) -> tuple[dict[str, bytes], list[str]]:
    """The files, and what is wrong with the form. Read from the front; then the whole is written again and compared:
    nothing can hide before, between or behind the files, nor in a field that other readers pass over."""
    files: dict[str, bytes] = {}
    faults: list[str] = []
    offset = 0
    while data[offset : offset + 4] == _LOCAL and offset + 30 <= len(data):
        size, length = struct.unpack_from("<I", data, offset + 22)[0], struct.unpack_from("<H", data, offset + 26)[0]
        start = offset + 30 + length
        name = data[offset + 30 : start].decode("ascii", "replace")
        if name in files:
            faults.append(f"zip: {name} is there twice")
        files[name] = data[start : start + size]
        offset = start + size
    try:
        again = zip_write(files)
    except (UnicodeEncodeError, Malformed):
        return files, [*faults, "zip: a name in it is not one of a bundle"]
    if again != data:
        place = next((at for at, pair in enumerate(zip(again, data)) if pair[0] != pair[1]), min(len(again), len(data)))
        faults.append(f"zip: byte {place} ({_where(files, place)}) is not as Holdpoint writes it")
    return files, faults


def _where(files: Mapping[str, bytes], place: int) -> str:
    offset = 0
    for name, data in files.items():
        begin, offset = offset, offset + 30 + len(name) + len(data)
        if begin <= place < offset:
            return f"the header of {name!a}" if place < begin + 30 + len(name) else f"in {name!a}"
    return "the directory at the end"


# -- hashes and proofs -----------------------------------------------------------------------------------------------
def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def entry_sha256(entry: Mapping[str, Any]) -> bytes:
    """Of a ledger entry: its header and the salted hash of its payload."""
    hashed = {name: entry[name] for name in (*HEADER, "payload_sha256")}
    if "format" not in entry:
        return sha256(canonical({**hashed, "format": ENTRY_V1}))
    return sha256(canonical({**hashed, "format": entry["format"], "earlier": entry["earlier"]}))


def entry_moves(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per move, in their order, each with its own action, reason code and payload."""
    actions = [*entry.get("earlier", ()), entry["action"]]
    if len(actions) == 1:
        return [dict(entry)]
    payloads = [None] * len(actions) if entry["payload"] is None else _facts(entry["payload"]["moves"])
    if len(payloads) != len(actions):
        raise Malformed("it does not have the facts of each of its moves")
    codes = [""] * (len(actions) - 1) + [entry["reason_code"]]
    return [
        {**entry, "action": action, "reason_code": code, "payload": payload}
        for action, code, payload in zip(actions, codes, payloads)
    ]


def _facts(moves: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Of each move. A fact that an earlier move said too is only named, in `as_before`."""
    told: dict[str, Any] = {}
    found = []
    for said in moves:
        facts = {name: told[name] for name in said.get("as_before", ())}
        facts.update({name: value for name, value in said.items() if name != "as_before"})
        told.update(facts)
        found.append(facts)
    return found


def payload_sha256(payload: Any, nonce: bytes) -> bytes:
    return sha256(nonce + canonical(payload))


def root_from(leaf: bytes, index: int, size: int, proof: Iterable[bytes]) -> bytes:
    """RFC 9162 2.1.3.2: the root that the proof leads to."""
    if not 0 <= index < size:
        raise Malformed("its position is outside the tree")
    first, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise Malformed("its proof is too long")
        if first & 1 or first == last:
            found = sha256(b"\x01" + sibling + found)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            found = sha256(b"\x01" + found + sibling)
        first, last = first >> 1, last >> 1
    if last != 0:
        raise Malformed("its proof is too short")
    return found


def _hex(text: Any, length: int = 32) -> bytes:
    """Lower case only, so that there is one way to write it."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]*", text) or len(text) != 2 * length:
        raise Malformed(f"{length} bytes in hexadecimal are missing")
    return bytes.fromhex(text)


# -- signed heads (C2SP tlog-checkpoint) -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Head:
    origin: str
    size: int
    root: bytes
    body: str
    signatures: tuple[tuple[str, bytes], ...]


def _base64(text: str) -> bytes:
    """One way to write it: what comes out must give the same text again."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed("base64 cannot be read") from error
    if base64.b64encode(raw).decode() != text:
        raise Malformed("base64 is not written in its one form")
    return raw


def head_read(text: str) -> Head:
    body, separator, tail = text.rpartition("\n\n")
    lines = body.split("\n")
    if not separator or not tail.endswith("\n") or len(lines) < 3 or not lines[0]:
        raise Malformed("it is not a signed checkpoint")
    root = _base64(lines[2])
    if len(root) != 32 or not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
        raise Malformed("size or root cannot be read")
    signatures = []
    for line in tail[:-1].split("\n"):
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "\u2014":
            raise Malformed("a signature line cannot be read")
        signatures.append((parts[1], _base64(parts[2])))
    return Head(lines[0], int(lines[1]), root, body + "\n", tuple(signatures))


@dataclass(frozen=True)
class PublicKey:
    """`name+id+base64`, as C2SP writes a verifier key."""

    name: str
    id: bytes
    raw: bytes

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()


def key_read(text: str, kind: bytes = b"\x01") -> PublicKey:
    """`kind` is 1 for the key of a log, 4 for that of a witness."""
    parts = text.strip().split("+", 2)
    if len(parts) != 3:
        raise Malformed("it is not a verifier key (name+id+base64)")
    raw = _base64(parts[2])
    if len(raw) != 33 or raw[:1] != kind or parts[1] != sha256(parts[0].encode() + b"\n" + raw)[:4].hex():
        raise Malformed("the verifier key does not fit its own id")
    return PublicKey(parts[0], bytes.fromhex(parts[1]), raw[1:])


def key_text(key: PublicKey) -> str:
    return f"{key.name}+{key.id.hex()}+{base64.b64encode(bytes([1]) + key.raw).decode()}"


def signed_by(head: Head, key: PublicKey) -> bool:
    """False: this key did not sign it. A signature in its name that does not fit is Malformed."""
    mine = [raw[4:] for name, raw in head.signatures if name == key.name and raw[:4] == key.id]
    for signature in mine:
        if not _fits(key, signature, head.body.encode()):
            raise Malformed("the signature does not fit the head")
    return bool(mine)


def _fits(key: PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise Unusable("the Python package `cryptography` is needed: pip install cryptography") from error
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, data)
    except InvalidSignature:
        return False
    return True


@dataclass(frozen=True)
class KeyHandover:
    """A key names the next one: `handover OLD NEW SIZE SIGNATURE`, in one line of `ledger/public-key.txt`."""

    old: PublicKey
    new: PublicKey


def key_handover_read(line: str) -> KeyHandover:
    """Malformed unless the old key signed it, and both are of one ledger."""
    parts = line.split(" ")
    if len(parts) != 5 or parts[0] != "handover" or not re.fullmatch(r"0|[1-9][0-9]{0,18}", parts[3]):
        raise Malformed("a line is not a handover of keys")
    found = KeyHandover(key_read(parts[1]), key_read(parts[2]))
    if found.old.name != found.new.name:
        raise Malformed("a handover is of two ledgers")
    text = f"holdpoint-key-handover-v1\n{parts[1]}\n{parts[2]}\n{parts[3]}\n"
    if not _fits(found.old, _base64(parts[4]), text.encode()):
        raise Malformed("a handover is not signed by the key that it replaces")
    return found


def keys_followed(keys: Iterable[PublicKey], handovers: Iterable[KeyHandover]) -> list[PublicKey]:
    """These keys, and every one that they handed over to, from key to key."""
    found, waiting = list(keys), list(handovers)
    for _ in range(len(waiting)):
        found += [one.new for one in waiting if one.old in found and one.new not in found]
    return found


def check_cosignatures(files: Mapping[str, bytes], report: Report, witnesses: list[PublicKey]) -> None:
    """Which of these witnesses cosigned the head (C2SP tlog-cosignature). A line in the name of one of them that it did
    not sign is a fault; lines of others say nothing, and none at all is no fault."""
    head = head_read(files[CHECKPOINT].decode())
    for witness in witnesses:
        for name, raw in head.signatures:
            if name == witness.name and raw[:4] == witness.id:
                text = f"cosignature/v1\ntime {int.from_bytes(raw[4:12], 'big')}\n{head.body}"
                if len(raw) != 76 or not _fits(witness, raw[12:], text.encode()):
                    raise Malformed(f"the cosignature of {name!a} does not fit the head")
                if name not in report.cosigned_by:
                    report.cosigned_by.append(name)
    report.witnesses_known = len(witnesses)
    if witnesses:
        known = f"{len(witnesses)} known witness{'es' if len(witnesses) > 1 else ''}"
        report.checked.append(f"cosignatures: the head is cosigned by {len(report.cosigned_by)} of {known}")


def _given_witnesses(text: str) -> list[PublicKey]:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        return [key_read(line, b"\x04") for line in dict.fromkeys(lines)]
    except Malformed as error:
        raise Unusable(f"the witness' key that was given: {error}") from error


# -- votes signed with a passkey (WebAuthn) --------------------------------------------------------------------------
REGISTERED, REMOVED = "passkey.registered", "passkey.removed"
_ORIGIN = re.compile(r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?")


def vote_challenge(review: str, action_digest: str, verdict: str, nonce: str) -> bytes:
    """What a person signs: the SHA-256 of exactly these four, as canonical JSON."""
    return sha256(canonical({"action_digest": action_digest, "nonce": nonce, "review": review, "verdict": verdict}))


def assertion_fault(signed: Mapping[str, Any], key: Mapping[str, Any], challenge: bytes) -> str:
    """What is wrong with an assertion; empty if the authenticator that was registered as `key` signed this challenge
    and had verified its owner. `key` is the payload of the ledger entry of the registration."""
    credential, authenticator, client, signature = (
        _base64(signed[name]) for name in ("credential_id", "authenticator_data", "client_data_json", "signature")
    )
    if hashlib.sha256(credential).hexdigest() != key["credential_sha256"]:
        return "credential"
    wrong = _client_fault(client, challenge, key["rp_id"]) or _authenticator_fault(authenticator, key["rp_id"])
    if wrong:
        return wrong
    data = authenticator + sha256(client)
    return "" if _signature_fits(key["algorithm"], _base64(key["public_key"]), signature, data) else "signature"


def _client_fault(data: bytes, challenge: bytes, rp_id: str) -> str:
    """Of clientDataJSON: what the browser says that it asked for, and on which page."""
    try:
        said = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return "client_data"
    if not isinstance(said, dict) or said.get("type") != "webauthn.get":
        return "client_data"
    if said.get("challenge") != base64.urlsafe_b64encode(challenge).decode().rstrip("="):
        return "challenge"
    same_page = said.get("crossOrigin") in (None, False)
    return "" if same_page and _origin_fits(said.get("origin"), rp_id) else "origin"


def _origin_fits(origin: Any, rp_id: str) -> bool:
    found = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if found is None:
        return False
    host = found.group(2)
    local = host == "localhost" or host.endswith(".localhost")
    return (found.group(1) == "https" or local) and (host == rp_id or host.endswith("." + rp_id))


def _authenticator_fault(data: bytes, rp_id: str) -> str:
    """Of authenticatorData: 32 bytes hash of the RP id, flags, counter, and extensions if the flags say so."""
    if len(data) < 37 or data[32] & 0x40 or bool(data[32] & 0x80) != (len(data) > 37):
        return "authenticator_data"
    if data[:32] != sha256(rp_id.encode()):
        return "rp_id"
    if not data[32] & 0x01:
        return "presence"
    return "" if data[32] & 0x04 else "verification"


def _signature_fits(algorithm: Any, spki: bytes, signature: bytes, data: bytes) -> bool:
    """ES256 (-7), EdDSA (-8) or RS256 (-257); the key must be of the kind that its algorithm says."""
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_der_public_key
    except ImportError as error:
        raise Unusable("the Python package `cryptography` is needed: pip install cryptography") from error
    try:
        public = load_der_public_key(spki)
        if algorithm == -7 and isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == "secp256r1":
            public.verify(signature, data, ec.ECDSA(SHA256()))
        elif algorithm == -8 and isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, data)
        elif algorithm == -257 and isinstance(public, rsa.RSAPublicKey) and public.key_size >= 2048:
            public.verify(signature, data, padding.PKCS1v15(), SHA256())
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


# -- what is derived from the rest, the same when writing and when checking ------------------------------------------
def costs_of(receipts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per provider, model and currency: how many calls, units and how much. Amounts are decimal text."""
    found: dict[tuple[str, str, str], list[Decimal]] = {}
    for receipt in receipts:
        cost = receipt.get("cost")
        if isinstance(cost, dict):
            key = (str(cost.get("provider", "")), str(cost.get("model", "")), str(cost.get("currency", "")))
            sums = found.setdefault(key, [Decimal(0), Decimal(0), Decimal(0)])
            for place, value in enumerate((1, cost.get("units"), cost.get("amount"))):
                sums[place] += _decimal(value)
    return [
        {
            "provider": provider,
            "model": model,
            "currency": currency,
            "calls": int(calls),
            "units": f"{units:f}",
            "amount": f"{amount:f}",
        }
        for (provider, model, currency), (calls, units, amount) in sorted(found.items())
    ]


def _decimal(value: Any) -> Decimal:
    try:
        found = Decimal(str(value)) if value is not None else Decimal(0)
    except InvalidOperation:
        return Decimal(0)
    return found if found.is_finite() else Decimal(0)


def entries_sha256(entries: Iterable[Mapping[str, Any]]) -> str:
    """Over the hashes of the entries in their order: none can be left out, added or moved."""
    return hashlib.sha256(b"".join(_hex(entry["sha256"]) for entry in entries)).hexdigest()


def anchor_payload(
    files: Mapping[str, bytes], entries: Sequence[Mapping[str, Any]], *, organization: str, subject: Mapping[str, str]
) -> dict[str, Any]:
    """What the ledger says about a bundle's content before it is sealed."""
    old = is_old(files)
    return {
        "format": FORMAT_1 if old else FORMAT,
        "organization": organization,
        "subject": dict(subject),
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in (CONTENT_1 if old else CONTENT)},
        "entries": {"count": len(entries), "sha256": entries_sha256(entries)},
    }


def manifest_of(files: Mapping[str, bytes]) -> dict[str, Any]:
    """From the other files alone: nothing can be written into a manifest that they do not say."""
    entries = read_canonical_json(files[ENTRIES])
    anchor, head = entries[-1], head_read(files[CHECKPOINT].decode())
    return {
        "format": FORMAT_1 if is_old(files) else FORMAT,
        "bundle": anchor["subject_id"],
        "organization": {"id": anchor["organization"], "slug": anchor["payload"]["organization"]},
        "subject": anchor["payload"]["subject"],
        "anchor": anchor["id"],
        "collected_at": anchor["at"],
        "checkpoint": {"origin": head.origin, "size": head.size, "root_sha256": head.root.hex()},
        "counts": {
            "entries": len(entries),
            **{name[: -len(".json")]: len(read_canonical_json(files[name])) for name in ROWS},
        },
        "files": {
            name: {"sha256": hashlib.sha256(files[name]).hexdigest(), "size": len(files[name])}
            for name in (NAMES_1 if is_old(files) else NAMES)
            if name != MANIFEST
        },
    }


def bundle_write(
    content: Mapping[str, bytes],
    entries: Sequence[Mapping[str, Any]],
    checkpoint: str,
    key: str,
    carriers: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """The whole bundle. `entries` with their proofs, the anchor last; `carriers` with theirs and without payload."""
    files = {name: content[name] for name in CONTENT}
    files[ENTRIES] = canonical(entries)
    files[CARRIERS] = canonical(carriers)
    files[CHECKPOINT] = checkpoint.encode()
    files[KEY] = key.strip().encode() + b"\n"
    files[MANIFEST] = canonical(manifest_of(files))
    return zip_write({name: files[name] for name in NAMES})


# -- checking --------------------------------------------------------------------------------------------------------
EXITS = {"authentic": 0, "not_valid": 1, "consistent": 3}


@dataclass
class Report:
    faults: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    subject: str = ""
    organization: str = ""
    bundle: str = ""
    signer: str = ""
    fingerprint: str = ""
    key_was_given: bool = False
    """By whoever checks. Without it nobody can say whose the bundle is: a forger signs with a key of their own."""
    differences: list[dict[str, str]] = field(default_factory=list)
    """Of the faults: those about one row, with table, id, field, what the ledger says and what the row says."""
    ties: dict[str, dict[str, Any]] = field(default_factory=dict)
    """For each file: its rows, how many of them are bound as a whole, and the fields that nothing ties."""
    cosigned_by: list[str] = field(default_factory=list)
    witnesses_known: int = 0
    votes: list[dict[str, Any]] = field(default_factory=list)
    """For each vote: who, whether it is signed by them and has to be, and since when their passkey is registered."""
    not_signed: list[str] = field(default_factory=list)
    """Of the faults: those that say that a vote is not signed by its person."""

    @property
    def valid(self) -> bool:
        return not self.faults

    @property
    def result(self) -> str:
        """`authentic`, `consistent` (but whose is unknown) or `not_valid`."""
        if self.faults:
            return "not_valid"
        return "authentic" if self.key_was_given else "consistent"

    @property
    def exit_code(self) -> int:
        return EXITS[self.result]

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)


def verify(data: bytes, *, public_key: str = "", witness_key: str = "") -> Report:
    """Everything that can be found out about these bytes. Raises only Unusable."""
    keys, witnesses = _given_keys(public_key), _given_witnesses(witness_key)
    report = Report(key_was_given=bool(keys))
    files, wrong = zip_read(data)
    report.faults += wrong
    names = NAMES_1 if is_old(files) else NAMES
    missing, extra = [name for name in names if name not in files], [name for name in files if name not in names]
    report.faults += [f"{name}: it is missing" for name in missing]
    report.faults += [f"{name!a}: it does not belong into a bundle" for name in extra]
    if not missing and not extra and tuple(files) != names:
        report.fault("zip: the files are not in their order")
    if missing:
        return report
    for step in (_check_manifest, _check_head, _check_entries, _check_anchor, _check_rows):
        _guarded(step, files, report, keys)
    _guarded(check_cosignatures, files, report, witnesses)
    return report


def _guarded(step: Callable[..., None], files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    """A file that is not even of the right shape is a fault like any other, whatever it makes the code stumble over."""
    try:
        step(files, report, keys)
    except Malformed as error:
        report.fault(f"{_SUBJECT_OF[step.__name__]}: {error}")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        report.fault(f"{_SUBJECT_OF[step.__name__]}: not of the expected shape ({type(error).__name__})")


_SUBJECT_OF = {
    "_check_manifest": MANIFEST,
    "_check_head": CHECKPOINT,
    "check_cosignatures": CHECKPOINT,
    "_check_entries": ENTRIES,
    "_check_anchor": "anchor",
    "_check_rows": "rows",
}


def keys_document(keys: Iterable[str], handovers: Iterable[str]) -> dict[str, Any]:
    """`holdpoint-keys.json`: the keys of a ledger, to be kept apart from it. `witnesses` is for their keys."""
    found = [key_read(text) for text in keys]
    return {
        "format": KEYS_FORMAT,
        "keys": [{"name": one.name, "id": one.id.hex(), "key": key_text(one)} for one in found],
        "handovers": list(handovers),
        "witnesses": [],
    }


def keys_read(text: str) -> str:
    """The content of `holdpoint-keys.json` as lines of keys and handovers. Raises Unusable."""
    try:
        document = json.loads(text)
        if document["format"] != KEYS_FORMAT or not document["keys"]:
            raise Malformed("it is of another format, or holds no key")
        for one in document["keys"]:
            key = key_read(one["key"])
            if (one["name"], one["id"]) != (key.name, key.id.hex()):
                raise Malformed("a name or an id does not fit its key")
        return "\n".join([*(one["key"] for one in document["keys"]), *document.get("handovers", [])])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = str(error) if isinstance(error, Malformed) else "it cannot be read"
        raise Unusable(f"the file of keys: {said}") from error


def _given_keys(public_key: str) -> list[PublicKey]:
    lines = [line.strip() for line in public_key.splitlines() if line.strip() and not line.startswith("#")]
    try:
        keys = [key_read(line) for line in lines if not line.startswith("handover ")]
        return keys_followed(keys, [key_handover_read(line) for line in lines if line.startswith("handover ")])
    except Malformed as error:
        raise Unusable(f"the public key that was given: {error}") from error


def _check_manifest(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    manifest = read_canonical_json(files[MANIFEST])
    if manifest.get("format") not in (FORMAT, FORMAT_1):
        raise Malformed("it is of a format that this verifier does not know")
    names = NAMES_1 if is_old(files) else NAMES
    for name in names:
        said = manifest["files"].get(name) if name != MANIFEST else None
        if said is not None and said.get("sha256") != hashlib.sha256(files[name]).hexdigest():
            report.fault(f"{name}: it is not the file that the manifest names")
    report.bundle, report.subject = str(manifest["bundle"]), "{kind} {id}".format(**manifest["subject"])
    report.organization = "{slug} ({id})".format(**manifest["organization"])
    if manifest != manifest_of(files):
        raise Malformed("it does not say what the files say")
    report.checked.append(f"{len(names)} files against the manifest, and the zip byte for byte")


def _check_head(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    head, (own, handovers) = head_read(files[CHECKPOINT].decode()), _own_key(files[KEY].decode())
    if files[KEY] != files[KEY].strip() + b"\n":
        report.fault(f"{KEY}: it is not written in its one form")
    if keys and own not in keys:
        keys = keys_followed(keys, handovers)
        if own not in keys:
            report.fault(f"{KEY}: it is not a key that was given to compare, nor one that such a key handed over to")
        else:
            report.checked.append("the handovers from a key that was given to the key of the head")
    if own.name != head.origin:
        report.fault(f"{CHECKPOINT}: it is of another log than the key")
    signers = [key for key in (keys or [own]) if signed_by(head, key)]
    if not signers:
        raise Malformed("it is not signed by the key")
    report.signer, report.fingerprint = signers[0].name, signers[0].fingerprint
    report.checked.append(f"the signature of the head of {head.size} entries")


def _own_key(text: str) -> tuple[PublicKey, list[KeyHandover]]:
    """The key of the head, and how the keys before it handed over, the newest first and without a gap."""
    first, *lines = text.strip().split("\n")
    own, handovers = key_read(first), [key_handover_read(line) for line in lines]
    for one, wanted in zip(handovers, [own, *(before.old for before in handovers)]):
        if one.new != wanted:
            raise Malformed("the handovers of keys do not lead to the key of the head")
    return own, handovers


def _check_entries(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    entries, head = read_canonical_json(files[ENTRIES]), head_read(files[CHECKPOINT].decode())
    carriers = [] if is_old(files) else read_canonical_json(files[CARRIERS])
    for file, rows in ((ENTRIES, entries), (CARRIERS, carriers)):
        for number, entry in enumerate(rows):
            try:
                _check_entry(entry, head, old=is_old(files), carrier=rows is carriers)
            except (Malformed, KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
                said = str(error) if isinstance(error, Malformed) else "not of the expected shape"
                report.fault(f"{file}: entry {number}: {said}")
    erased = sum(1 for entry in entries if entry.get("payload") is None)
    for name in ("id", "position"):
        if len({entry[name] for entry in [*entries, *carriers]}) != len(entries) + len(carriers):
            report.fault(f"{ENTRIES}: two entries have the same {name}")
    # A person's passkeys belong to no organization.
    owned = [entry for entry in entries if entry["organization"] is not None or not _is_passkey(entry)]
    if len({entry["organization"] for entry in owned}) != 1 or owned[0]["organization"] is None:
        report.fault(f"{ENTRIES}: they are not all of one organization")
    told = f" ({erased} with an erased payload)" if erased else ""
    report.checked.append(f"{len(entries)} ledger entries{told}: their hashes, and their inclusion in the signed head")


def _is_passkey(entry: Mapping[str, Any]) -> bool:
    return entry["subject_type"] == "passkey" and entry["action"] in (REGISTERED, REMOVED)


def _check_entry(entry: Mapping[str, Any], head: Head, *, old: bool, carrier: bool) -> None:
    names = {*HEADER, "payload", "nonce", "payload_sha256", "sha256", "position", "proof"}
    names = names if old else names | {"rows"}
    if set(entry) not in (names, {*names, "format", "earlier"}):
        raise Malformed("it has other fields than an entry has")
    if entry.get("format", ENTRY_V2) != ENTRY_V2:
        raise Malformed("it is of a format that this verifier does not know")
    if not old and type(entry["rows"]) is not list:
        raise Malformed("its bound rows are not a list")
    if carrier and (entry["payload"] is not None or not entry["rows"]):
        raise Malformed("it carries no rows, or more than them")
    entry_hashes(entry)
    if type(entry["position"]) is not int:
        raise Malformed("its position is not a number")
    proof = [_hex(sibling) for sibling in entry["proof"]]
    if root_from(sha256(b"\x00" + leaf_data(entry)), entry["position"], head.size, proof) != head.root:
        raise Malformed("it is not in the signed head")


def entry_hashes(entry: Mapping[str, Any]) -> None:
    """Malformed unless header and payload have the hashes that the entry names."""
    _hex(entry["payload_sha256"])
    if entry["payload"] is not None:
        if payload_sha256(entry["payload"], _hex(entry["nonce"], 16)).hex() != entry["payload_sha256"]:
            raise Malformed("its payload was changed")
    elif entry["nonce"] is not None:
        raise Malformed("its payload is erased and its nonce is not")
    if entry_sha256(entry) != _hex(entry["sha256"]):
        raise Malformed("it was changed")


def _check_anchor(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    entries = read_canonical_json(files[ENTRIES])
    anchor = entries[-1]
    if anchor["action"] != ANCHOR or anchor["subject_type"] != "evidence_bundle" or anchor["payload"] is None:
        raise Malformed("the last ledger entry does not say what the bundle holds")
    payload = anchor["payload"]
    said = anchor_payload(files, entries[:-1], organization=payload["organization"], subject=payload["subject"])
    for name in said["files"]:
        if payload["files"].get(name) != said["files"][name]:
            report.fault(f"{name}: it is not the file that the ledger names")
    if payload["entries"] != said["entries"]:
        report.fault(f"{ENTRIES}: they are not all the entries that the ledger names, in their order")
    if payload != said:
        raise Malformed("it does not say what the bundle holds")
    report.checked.append(f"{len(said['files'])} files against what the ledger recorded about them")


def _check_rows(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    rows = {name[: -len(".json")]: read_canonical_json(files[name]) for name in ROWS}
    images, carriers = (read_canonical_json(files[name]) if name in files else [] for name in (IMAGES, CARRIERS))
    found = compare(rows, read_canonical_json(files[ENTRIES]), images, carriers)
    for one in found.differences:
        report.fault(one.text)
    report.differences = [one.as_json() for one in found.differences]
    report.votes, report.not_signed, report.ties = found.votes, found.not_signed, found.ties()
    if rows["costs"] != costs_of(rows["receipts"]):
        report.fault("costs.json: they are not the sum of the receipts")
    some = ", ".join(f"{len(rows[name])} {name}" for name in ("decisions", "transitions", "votes", "receipts"))
    told = f" ({found.withheld} comparisons left out: the payload is erased)" if found.withheld else ""
    report.checked.append(f"the rows, field by field, against the entries that record them: {some}{told}")
    count = sum(1 for vote in found.votes if vote["signed"])
    report.checked.append(f"the signatures under the votes: {count} of {len(rows['votes'])} signed by their person")
    if images:
        whole = sum(one["bound"] for one in report.ties.values())
        report.checked.append(f"{whole} rows as a whole against the digests under the signed head")


# -- bound rows: what a leaf covers besides its entry -----------------------------------------------------------------
# The first two bytes of an item also hold the shape of the row and whether its digest is salted.
_CLOCK, _ITEM, _NUMBER = 8, 54, 1023


@dataclass(frozen=True)
class BoundRow:
    """One item: in this transaction the row of this table got this version and this digest (zeros: it was deleted)."""

    table: int
    id: str
    version: int
    digest: bytes

    @property
    def deleted(self) -> bool:
        return not any(self.digest)


def bound_rows(part: bytes) -> tuple[int, list[BoundRow]]:
    """The database's clock in microseconds, and the items: table (2 bytes), id (16), version (4), digest (32)."""
    if len(part) < _CLOCK or (len(part) - _CLOCK) % _ITEM:
        raise Malformed("its bound rows are not whole")
    found = []
    for place in range(_CLOCK, len(part), _ITEM):
        table, raw, version, digest = struct.unpack_from(">H16sI32s", part, place)
        found.append(BoundRow(table & _NUMBER, row_id(raw), version, digest))
    return int.from_bytes(part[:_CLOCK], "big"), found


def row_id(raw: bytes) -> str:
    """As text: an integer that is right-aligned, or a UUID. UUIDs of Holdpoint never begin with eight zero bytes."""
    if not any(raw[:8]):
        return str(int.from_bytes(raw, "big"))
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def row_digest(image: str, salt: bytes) -> bytes:
    """`salt` is empty for tables that nobody may erase."""
    return sha256(salt + image.encode("utf-8"))


def leaf_data(entry: Mapping[str, Any]) -> bytes:
    """What the leaf of an entry is made of: its hash, and the hash of the rows bound to it, if there are any."""
    found = entry_sha256(entry)
    parts = entry.get("rows") or []
    return found + sha256(b"".join(_bytes(part) for part in parts)) if parts else found


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str) or not re.fullmatch(r"(?:[0-9a-f]{2})+", text):
        raise Malformed("bytes in hexadecimal are missing")
    return bytes.fromhex(text)


# -- rows against the ledger: the same comparison when a bundle is built and when it is checked -----------------------
# For each file: the word for one of its rows, its table, and columns that have another name there.
TABLES: dict[str, tuple[str, str, dict[str, str]]] = {
    "decisions": ("decision", "governance_enforcementdecision", {}),
    "envelope": ("attempt", "attempts_attempt", {}),
    "events": ("event", "workflows_workflowevent", {}),
    "instance": ("run", "workflows_workflowinstance", {"status": "state"}),
    "intents": ("intent", "attempts_dispatchintent", {}),
    "interventions": ("intervention", "workflows_workflowintervention", {"at": "created_at"}),
    "quarantine": ("case", "attempts_quarantinecase", {}),
    "receipts": ("receipt", "attempts_receipt", {}),
    "reviews": ("review", "attempts_review", {}),
    "steps": ("step", "workflows_workflowstep", {"status": "state"}),
    "transitions": ("transition", "attempts_attempttransition", {}),
    "votes": ("vote", "attempts_reviewvote", {}),
}
LEDGER_TABLE, SNAPSHOT_TABLE = "governance_ledgerentry", "governance_snapshot"
PEOPLE_TABLE = "governance_personreference"
# Their values are codes and states, not what somebody submitted, so a message may name them.
CODES = frozenset(
    "state status outcome verdict reason_code from_state to_state actor_kind category finding resolution action kind "
    "effect risk_tier runtime_mode event_type rule_id late".split()
)
_PLAIN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+(\+00:00)?|\d+")


@dataclass(frozen=True)
class Difference:
    """What the ledger says and what a row says. `ledger` and `row` are ids, times, numbers and codes; of other values
    only the beginning of their hash."""

    table: str
    id: str
    field: str
    ledger: str
    row: str
    text: str

    def as_json(self) -> dict[str, str]:
        names = ("table", "id", "field", "ledger", "row")
        return {name: str(getattr(self, name)) for name in names}


def value_shown(name: str, value: Any) -> str:
    if value is None or value == "":
        return "nothing"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, str) and (_PLAIN.fullmatch(value) or (name in CODES and len(value) <= 64)):
        return value
    return f"sha256 {sha256(canonical(value)).hex()[:12]}"


class Comparison:
    """The rows of a bundle, the ledger entries about them, and where they differ."""

    def __init__(
        self,
        rows: Mapping[str, list[dict[str, Any]]],
        entries: Iterable[Mapping[str, Any]],
        images: Iterable[Mapping[str, Any]] = (),
        carriers: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.rows = rows
        self.sealed = list(entries)
        self.entries = [one for entry in self.sealed for one in entry_moves(entry)]
        self.images, self.carriers = list(images), list(carriers)
        self.differences: list[Difference] = []
        self.withheld = 0
        self.tied: set[tuple[str, str, str]] = set()
        self.bound: set[tuple[str, str]] = set()
        self.votes: list[dict[str, Any]] = []
        self.not_signed: list[str] = []

    # what is found
    def differ(self, table: str, key: Any, name: str, text: str, ledger: str = "", row: str = "") -> None:
        found = Difference(table, str(key), name, ledger, row, text)
        if all(one.text != text for one in self.differences):
            self.differences.append(found)

    def same(self, file: str, row: Mapping[str, Any], name: str, said: Any) -> None:
        """The ledger ties this field of the row; it must be `said`. Rows of old bundles do not have every field."""
        if name not in row:
            return
        word, table, _ = TABLES[file]
        self.tied.add((file, row["id"], name))
        if row[name] != said:
            told = f"{word} {row['id']}: its {name} is not what the ledger says"
            self.differ(table, row["id"], name, told, value_shown(name, said), value_shown(name, row[name]))

    def unexplained(self, file: str, row: Mapping[str, Any]) -> None:
        word, table, _ = TABLES[file]
        told = f"{word} {row['id']}: no ledger entry records it"
        self.differ(table, row["id"], "", told, "no entry", "there is a row")

    def missing(self, file: str, key: str) -> None:
        word, table, _ = TABLES[file]
        told = f"{word} {key}: the ledger names it and it is not there"
        self.differ(table, key, "", told, "it was written", "there is no row")

    # the ledger
    def about(self, subject: Any) -> list[Mapping[str, Any]]:
        return [entry for entry in self.entries if entry["subject_id"] == subject]

    def erased(self, subject: Any) -> bool:
        """Whether a payload about this subject is erased, so that it cannot be compared."""
        return any(entry["payload"] is None for entry in self.about(subject))

    def naming(self, key: str, value: Any) -> Mapping[str, Any] | None:
        """The entry whose payload names it."""
        return next((entry for entry in self.entries if (entry["payload"] or {}).get(key) == value), None)

    def recorded(self, file: str, key: str, row: Mapping[str, Any], subject: Any) -> Mapping[str, Any] | None:
        """The entry that records this row. None: there is none, which is a difference unless its payload is erased."""
        entry = self.naming(key, row["id"])
        if entry is None and self.erased(subject):
            self.withheld += 1
        elif entry is None:
            self.unexplained(file, row)
        return entry

    def all_there(self, file: str, key: str) -> None:
        """Nothing that the ledger names may be missing."""
        known = {row["id"] for row in self.rows[file]}
        for entry in self.entries:
            named = (entry["payload"] or {}).get(key)
            if named is not None and named not in known:
                self.missing(file, named)

    def untied(self) -> dict[str, dict[str, int]]:
        """For each file: the fields that no sealed entry ties, and in how many rows."""
        found: dict[str, dict[str, int]] = {}
        for file in TABLES:
            for row in self.rows[file]:
                for name in row:
                    if (file, row["id"], name) not in self.tied:
                        counts = found.setdefault(file, {})
                        counts[name] = counts.get(name, 0) + 1
        return found

    def ties(self) -> dict[str, dict[str, Any]]:
        """For each file with rows: how many there are, how many are bound as a whole, and what nothing ties."""
        untied = self.untied()
        return {
            file: {
                "rows": len(self.rows[file]),
                "bound": sum(1 for row in self.rows[file] if (file, row["id"]) in self.bound),
                "not_tied": untied.get(file, {}),
            }
            for file in TABLES
            if self.rows[file]
        }


def compare_entries(found: Comparison) -> None:
    """Each entry by itself; when a bundle is checked, this is done with the proofs."""
    for entry in [*found.sealed, *found.carriers]:
        try:
            entry_hashes(entry)
        except Malformed as error:
            found.differ(LEDGER_TABLE, entry["id"], "payload", f"entry {entry['id']}: {error}")


def compare(
    rows: Mapping[str, list[dict[str, Any]]],
    entries: Sequence[Mapping[str, Any]],
    images: Iterable[Mapping[str, Any]] = (),
    carriers: Iterable[Mapping[str, Any]] = (),
) -> Comparison:
    """Every row, field against field, with what the ledger says. Entries must be checked by themselves."""
    found = Comparison(rows, entries, images, carriers)
    organization = next((entry["organization"] for entry in entries if entry["organization"] is not None), None)
    checks = (
        *(_decisions, _attempts, _transitions, _reviews, _votes, _signatures, _executions, _cases, _runs, _steps),
        *(_interventions, _events, _people, _images),
    )
    for check in checks:
        try:
            check(found, organization)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            name = check.__name__[1:]
            found.differ(name, "", "", f"{name}: not of the expected shape ({type(error).__name__})")
    return found


def _decisions(found: Comparison, organization: Any) -> None:
    snapshots = {}
    for row in found.rows["snapshots"]:
        if sha256(canonical(row["document"])).hex() != row["sha256"]:
            told = f"snapshot {row['sha256']}: its content was changed"
            found.differ(SNAPSHOT_TABLE, row["sha256"], "document", told)
        snapshots[row["sha256"]] = row["document"]
    for row in found.rows["decisions"]:
        _decision_inputs(found, row, organization, snapshots)
        if row["request"] is None:
            continue
        attempt = next((one["id"] for one in found.rows["envelope"] if one["decision_id"] == row["id"]), None)
        entry = found.recorded("decisions", "decision", row, attempt or row.get("subject_id"))
        if entry is not None:
            _decision_recorded(found, row, entry)
    found.all_there("decisions", "decision")


def _decision_inputs(
    found: Comparison, row: Mapping[str, Any], organization: Any, snapshots: Mapping[str, Any]
) -> None:
    """Request and environment have the hashes that the row names, and lead to the snapshots."""
    erased = row["request"] is None and row["request_sha256"] == ""
    found.withheld += erased
    table = TABLES["decisions"][1]
    for name in ("environment",) if erased else ("request", "environment"):
        if sha256(canonical(row[name])).hex() != row[f"{name}_sha256"]:
            found.differ(table, row["id"], name, f"decision {row['id']}: its {name} was changed")
        found.tied.add(("decisions", row["id"], name))
    environment = row["environment"]
    for name in ("contract_sha256", "policy_sha256", "region_sha256"):
        if environment.get(name) and environment[name] not in snapshots:
            told = f"decision {row['id']}: the snapshot of its {name[:-7]} is missing"
            found.differ(SNAPSHOT_TABLE, environment[name], "", told)
    if environment["organization"]["id"] != organization:
        found.differ(table, row["id"], "organization", f"decision {row['id']}: it is of another organization")
    contract, policy = (snapshots.get(environment.get(f"{part}_sha256")) for part in ("contract", "policy"))
    if isinstance(contract, dict) and "id" in contract:
        found.same("decisions", row, "contract_id", contract["id"])
    if isinstance(policy, dict) and "version" in policy:
        found.same("decisions", row, "policy_version", policy["version"])


_VERDICT_OF = {"attempt.approved": "allow", "attempt.held": "needs_approval", "attempt.denied": "deny"}


def _decision_recorded(found: Comparison, row: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    found.same("decisions", row, "id", entry["payload"]["decision"])
    found.same("decisions", row, "rule_id", entry["payload"].get("rule"))
    found.same("decisions", row, "reason_code", entry["reason_code"])
    found.same("decisions", row, "at", entry["at"])
    for name in ("request_sha256", "environment_sha256"):
        found.same("decisions", row, name, entry["payload"].get(name))
    if entry["action"] in _VERDICT_OF:
        found.same("decisions", row, "verdict", _VERDICT_OF[entry["action"]])
    again = entry["action"] == "attempt.decided"  # before an act of the attempt
    found.same("decisions", row, "act", entry["payload"].get("act") if again else "")
    found.same("decisions", row, "subject_id", entry["subject_id"] if again else None)
    if again:
        found.same("decisions", row, "verdict", entry["payload"].get("verdict"))


# Columns of an attempt and where the request that was decided about says them.
_OF_ENVELOPE = {
    "caller_id": "caller_ref",
    "contract_version": "contract_version",
    "idempotency_key": "idempotency_key",
    "organization_id": "tenant_ref",
    "patient_context_ref": "patient_context_ref",
    "request_trace_id": "request_trace_id",
    "review_owner": "review_owner",
    "runtime_mode": "runtime_mode",
    "workflow_slug": "workflow_slug",
}
_OF_ACTION = ("connector", "operation", "target_ref", "risk_tier", "payload_ref", "payload_sha256", "fields")


def _attempts(found: Comparison, organization: Any) -> None:
    decisions = {row["id"]: row for row in found.rows["decisions"]}
    snapshots = {row["sha256"]: row["document"] for row in found.rows["snapshots"]}
    table = TABLES["envelope"][1]
    for row in found.rows["envelope"]:
        received = [entry for entry in found.about(row["id"]) if entry["action"] == "attempt.received"]
        if len(received) != 1:
            told = f"attempt {row['id']}: the ledger does not say once that it was asked for"
            found.differ(table, row["id"], "", told, f"{len(received)} times", "there is a row")
        else:
            _attempt_received(found, row, received[0])
        decision = decisions.get(row["decision_id"])
        if decision is None:
            told = f"attempt {row['id']}: its decision is missing"
            found.differ(table, row["id"], "decision_id", told, "there was one", "there is no such row")
        elif decision["request"] is None:
            found.withheld += 1
        else:
            _attempt_decided(found, row, decision, snapshots, received)
        if row["organization_id"] != organization:
            told = f"attempt {row['id']}: it is of another organization"
            found.differ(table, row["id"], "organization_id", told, str(organization), str(row["organization_id"]))


def _attempt_received(found: Comparison, row: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    found.same("envelope", row, "id", entry["subject_id"])
    found.same("envelope", row, "created_at", entry["at"])
    found.same("envelope", row, "organization_id", entry["organization"])
    if entry["payload"] is not None:
        found.same("envelope", row, "action_digest", entry["payload"].get("digest"))
        decided = next((one for one in found.about(row["id"]) if "decision" in (one["payload"] or {})), None)
        if decided is not None:
            found.same("envelope", row, "decision_id", decided["payload"]["decision"])


def _facts_stated(contract: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the request says of the facts that its contract declares."""
    declared = contract["documents"]["metadata_boundary"].get("facts", []) if isinstance(contract, dict) else []
    return {row["name"]: metadata[row["name"]] for row in declared if row["name"] in metadata}


def _attempt_decided(
    found: Comparison,
    row: Mapping[str, Any],
    decision: Mapping[str, Any],
    snapshots: Mapping[str, Any],
    received: Sequence[Mapping[str, Any]],
) -> None:
    """Field against field with the request that was decided about; its hash stands in the ledger."""
    request, contract = decision["request"], snapshots.get(decision["environment"].get("contract_sha256"))
    envelope, action = request["envelope"], request["action"]
    for name, said in _OF_ENVELOPE.items():
        if said in envelope:
            found.same("envelope", row, name, "" if envelope[said] is None else envelope[said])
    for name in _OF_ACTION:
        if name in action or name != "risk_tier":
            found.same("envelope", row, name, action.get(name) or ([] if name == "fields" else ""))
    found.same("envelope", row, "metadata", request.get("metadata", {}))
    # A reviewer approves the action with the typed facts that the contract declares.
    stated = _facts_stated(contract, request.get("metadata", {}))
    if sha256(canonical({**action, "facts": stated} if stated else action)).hex() != row["action_digest"]:
        told = f"attempt {row['id']}: its action is not the one that was decided about"
        found.differ(TABLES["envelope"][1], row["id"], "action_digest", told)
    link = envelope.get("audit_event_link")
    # Before, the link named the attempt; since then the ledger entry that tells of it.
    known = [f"urn:holdpoint:attempt:{row['id']}", *(f"/api/v1/ledger/entries/{entry['id']}" for entry in received)]
    if link is not None and link not in known:
        told = f"attempt {row['id']}: its decision is about another attempt"
        found.differ(TABLES["envelope"][1], row["id"], "decision_id", told, str(link)[-36:], str(row["id"]))
    found.same("envelope", row, "contract_id", decision["contract_id"])
    if isinstance(contract, dict) and "effect" in contract:
        found.same("envelope", row, "effect", contract["effect"])


STATE_INTO = {action: state for state, actions in ACTIONS_INTO.items() for action in actions}
_ENDED = frozenset(("preflight-denied", "completed", "failed-quarantined"))


def _transitions(found: Comparison, organization: Any) -> None:
    table = TABLES["transitions"][1]
    for attempt in found.rows["envelope"]:
        moves = [row for row in found.rows["transitions"] if row["attempt_id"] == attempt["id"]]
        entries = [entry for entry in found.about(attempt["id"]) if entry["action"] in MOVES]
        state = "received"
        for move in moves:
            if move["from_state"] != state:
                told = f"transition {move['id']}: it does not begin where the one before it ended"
                found.differ(table, move["id"], "from_state", told, state, value_shown("state", move["from_state"]))
            state = move["to_state"]
        if state != attempt["state"]:
            told = f"attempt {attempt['id']}: its transitions do not lead to its state"
            found.differ(TABLES["envelope"][1], attempt["id"], "state", told, state, str(attempt["state"]))
        if len(moves) != len(entries):
            told = f"attempt {attempt['id']}: transitions and ledger entries differ in number"
            found.differ(table, attempt["id"], "", told, str(len(entries)), str(len(moves)))
        for move, entry in zip(moves, entries):
            _transition(found, move, entry)
        if entries:
            _attempt_ended(found, attempt, entries[-1])
    known = {row["id"] for row in found.rows["envelope"]}
    for move in found.rows["transitions"]:
        if move["attempt_id"] not in known:
            found.unexplained("transitions", move)


def _transition(found: Comparison, move: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    before = len(found.differences)
    found.tied.add(("transitions", move["id"], "from_state"))
    found.same("transitions", move, "to_state", STATE_INTO[entry["action"]])
    found.same("transitions", move, "attempt_id", entry["subject_id"])
    for name in ("at", "actor_kind", "actor_ref", "reason_code"):
        found.same("transitions", move, name, entry[name])
    if len(found.differences) > before:
        told = f"transition {move['id']}: it is not what the ledger says"
        found.differ(TABLES["transitions"][1], move["id"], "", told)


def _attempt_ended(found: Comparison, attempt: Mapping[str, Any], last: Mapping[str, Any]) -> None:
    state = STATE_INTO[last["action"]]
    found.same("envelope", attempt, "state", state)
    found.same("envelope", attempt, "reason_code", last["reason_code"])
    found.same("envelope", attempt, "ended_at", last["at"] if state in _ENDED else None)


_REVIEW_ENDS = {
    f"review.{word}": word
    for word in ("approved", "rejected", "confirmed", "overridden", "decided", "expired", "canceled")
}


def _reviews(found: Comparison, organization: Any) -> None:
    attempts = {row["id"]: row for row in found.rows["envelope"]}
    decisions = {row["id"]: row for row in found.rows["decisions"]}
    for row in found.rows["reviews"]:
        entries = found.about(row["id"])
        ended = [entry for entry in entries if entry["action"] in _REVIEW_ENDS]
        found.same("reviews", row, "status", _REVIEW_ENDS[ended[-1]["action"]] if ended else "requested")
        found.same("reviews", row, "decided_at", ended[-1]["at"] if ended else None)
        for entry in entries:
            said = entry["payload"] or {}
            for name, key in (("tier", "tier"), ("attempt_id", "attempt"), ("origin_step", "origin_step")):
                if key in said:
                    found.same("reviews", row, name, said[key])
            if entry["action"] == "review.opened":
                found.same("reviews", row, "requested_at", entry["at"])
                if said:
                    found.same("reviews", row, "action_digest", said.get("action_digest"))
        attempt = attempts.get(row["attempt_id"])
        if attempt is not None:
            _review_held(found, row, attempt, decisions.get(row.get("decision_id") or attempt["decision_id"]))


def _review_held(
    found: Comparison, row: Mapping[str, Any], attempt: Mapping[str, Any], decision: Mapping[str, Any] | None
) -> None:
    """The review of a held attempt: what the decision asked for."""
    about = found.about(attempt["id"])
    again = [entry for entry in about if entry["action"] == "attempt.held_again" and entry["payload"]]
    held = next((entry for entry in again if entry["payload"].get("review") == row["id"]), None)
    held = held or next((entry for entry in about if entry["action"] == "attempt.held"), None)
    found.same("reviews", row, "requested_at", held["at"] if held is not None else None)
    found.same("reviews", row, "kind", "release")
    if row.get("decision_id") is not None and held is not None and held["payload"]:
        found.same("reviews", row, "decision_id", held["payload"].get("decision"))
    if decision is None or decision["request"] is None or not decision["approval"]:
        return
    found.same("reviews", row, "action_digest", attempt["action_digest"])
    for name in ("tier", "approvals_required"):
        found.same("reviews", row, name, decision["approval"][name])
    found.same("reviews", row, "buckets", decision["approval"].get("buckets", []))


def _votes(found: Comparison, organization: Any) -> None:
    for row in found.rows["votes"]:
        entry = found.recorded("votes", "vote", row, row["review_id"])
        if entry is None:
            continue
        said = entry["payload"]
        found.same("votes", row, "id", said["vote"])
        found.same("votes", row, "review_id", entry["subject_id"])
        found.same("votes", row, "voter_ref", entry["actor_ref"])
        for name in ("verdict", "action_digest"):
            found.same("votes", row, name, said.get(name))
        for name in ("reason_code", "at"):
            found.same("votes", row, name, entry[name])
        found.same("votes", row, "on_behalf_of_ref", said.get("on_behalf_of") or "")
        for name in ("note_sha256", "result_ref", "result_sha256"):
            found.same("votes", row, name, said.get(name) or "")
        if row.get("outcome"):  # the answer to a task; bundles from before there were tasks do not have the column
            found.same("votes", row, "outcome", said.get("outcome"))
    found.all_there("votes", "vote")


def _signatures(found: Comparison, organization: Any) -> None:
    """Whether each vote is signed by its person. Bundles from before signatures have none and ask for none."""
    asked = _asked_for(found.rows)
    for row in found.rows["votes"]:
        signed, needed = row.get("signature"), row["review_id"] in asked
        why, key = ("it has no signature", None) if signed is None else _signed_by_person(row, signed, found)
        report = {"vote": row["id"], "person": row["voter_ref"], "verdict": row["verdict"], "required": needed}
        report["signed"] = not why
        report["passkey_registered_at"] = key["at"] if key else None
        report["passkey_registered_by"] = key["id"] if key else None
        found.votes.append(report)
        found.tied.add(("votes", row["id"], "signature"))
        if why and (needed or signed is not None):
            fault = f"vote {row['id']}: it is not signed by its person ({row['voter_ref']}): {why}"
            found.differ(TABLES["votes"][1], row["id"], "signature", fault)
            found.not_signed.append(fault)


def _asked_for(rows: Mapping[str, Any]) -> set[str]:
    """The reviews whose contract asks for signatures, by the snapshot that the decision names."""
    snapshots = {row["sha256"]: row["document"] for row in rows["snapshots"]}
    contracts = {row["id"]: snapshots.get(row["environment"].get("contract_sha256")) for row in rows["decisions"]}
    asking = set()
    for row in rows["envelope"]:
        contract = contracts.get(row["decision_id"])
        if isinstance(contract, dict) and contract.get("signature") == "passkey":
            asking.add(row["id"])
    return {row["id"] for row in rows["reviews"] if row["attempt_id"] in asking}


def _signed_by_person(
    row: Mapping[str, Any], signed: Mapping[str, Any], found: Comparison
) -> tuple[str, Mapping[str, Any] | None]:
    """What is wrong with the signature (empty: nothing), and the ledger entry of the key's registration."""
    voted = found.naming("vote", row["id"])
    key = next((e for e in found.entries if e["id"] == signed["registered_entry"] and e["action"] == REGISTERED), None)
    if key is None or key["subject_id"] != signed["passkey"] or not _is_passkey(key):
        return "no ledger entry registers its passkey", None
    if key["payload"] is None:
        return "the registration of its passkey is erased", key
    wrong = _out_of_time(signed, voted, key, found) if voted is not None else ""
    return wrong or _not_by_key(row, signed, key), key


def _not_by_key(row: Mapping[str, Any], signed: Mapping[str, Any], key: Mapping[str, Any]) -> str:
    """Whether the registered key is the voter's and made this signature."""
    told = key["payload"]
    if told["person"] != row["voter_ref"] or (key["actor_kind"], key["actor_ref"]) != ("person", row["voter_ref"]):
        return "its passkey is registered to somebody else"
    if any(signed[name] != told[name] for name in ("algorithm", "public_key", "rp_id")):
        return "its public key is not the registered one"
    try:
        challenge = vote_challenge(row["review_id"], row["action_digest"], row["verdict"], signed["nonce"])
        wrong = assertion_fault(signed, told, challenge)
    except (Malformed, KeyError, TypeError, ValueError, AttributeError):
        return "it cannot be read"
    return f"the assertion's {wrong.replace('_', ' ')} does not fit" if wrong else ""


def _out_of_time(signed: Mapping[str, Any], voted: Mapping[str, Any], key: Mapping[str, Any], found: Comparison) -> str:
    """By the order of the sealed entries: the key was there when the vote was cast, and the vote had this signature.
    While a bundle is collected, entries have no position yet; then their order in time counts."""

    def place(entry: Mapping[str, Any]) -> Any:
        return entry.get("position", entry["id"])

    removed = [e for e in found.entries if e["action"] == REMOVED and e["subject_id"] == signed["passkey"]]
    if place(key) > place(voted):
        return "its passkey was registered after the vote"
    if any(place(entry) < place(voted) for entry in removed):
        return "its passkey was removed before the vote"
    if voted["payload"].get("signature_sha256") != sha256(canonical(signed)).hex():
        return "it is not the signature that the ledger names"
    return ""


def _executions(found: Comparison, organization: Any) -> None:
    for row in found.rows["intents"]:
        entry = found.recorded("intents", "intent", row, row["attempt_id"])
        if entry is None:
            continue
        said = entry["payload"]
        for name, value in (("id", said["intent"]), ("action_digest", said.get("digest")), ("at", entry["at"])):
            found.same("intents", row, name, value)
        for name in ("number", "fence", "adapter", "effect_key"):
            found.same("intents", row, name, said.get(name))
        found.same("intents", row, "decision_id", said.get("decided"))
        found.same("intents", row, "attempt_id", entry["subject_id"])
        leased = [e for e in found.about(row["attempt_id"]) if e["action"] == "attempt.leased" and e["payload"]]
        owner = [e["payload"].get("owner") for e in leased if e["payload"].get("fence") == row["fence"]]
        if owner:
            found.same("intents", row, "executor_ref", owner[-1])
    for row in found.rows["receipts"]:
        entry = found.recorded("receipts", "receipt", row, row["attempt_id"])
        if entry is not None:
            _receipt(found, row, entry)
    found.all_there("intents", "intent")
    found.all_there("receipts", "receipt")
    for row in found.rows["envelope"]:
        sent = [one for one in found.about(row["id"]) if "intent" in (one["payload"] or {})]
        if not found.erased(row["id"]):
            found.same("envelope", row, "tries", len(sent))


_OUTCOME_OF = {"attempt.completed": "success", "attempt.retried": "failure", "attempt.quarantined": "failure"}


def _receipt(found: Comparison, row: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    found.same("receipts", row, "id", entry["payload"]["receipt"])
    found.same("receipts", row, "attempt_id", entry["subject_id"])
    found.same("receipts", row, "at", entry["at"])
    late = entry["action"] == "attempt.late_evidence"
    found.same("receipts", row, "late", late)
    outcome = entry["payload"].get("outcome") if late else _OUTCOME_OF.get(entry["action"])
    if outcome is not None:
        found.same("receipts", row, "outcome", outcome)
    fence = entry["payload"].get("fence")
    sent = [one for one in found.rows["intents"] if (one["attempt_id"], one["fence"]) == (row["attempt_id"], fence)]
    if len(sent) == 1:
        found.same("receipts", row, "intent_id", sent[0]["id"])


_RESOLVED = {f"quarantine.{word}": word for word in ("accepted", "retry_authorized", "compensated")}
_RESOLVED["quarantine.handed_over"] = "incident"


def _cases(found: Comparison, organization: Any) -> None:
    for row in found.rows["quarantine"]:
        entry = found.recorded("quarantine", "case", row, row["attempt_id"])
        if entry is not None:
            found.same("quarantine", row, "id", entry["payload"]["case"])
            found.same("quarantine", row, "attempt_id", entry["subject_id"])
            found.same("quarantine", row, "category", entry["payload"].get("category"))
            found.same("quarantine", row, "reason_code", entry["reason_code"])
            found.same("quarantine", row, "opened_at", entry["at"])
        entries = found.about(row["id"])
        ended = [one for one in entries if one["action"] in _RESOLVED]
        found.same("quarantine", row, "resolution", _RESOLVED[ended[-1]["action"]] if ended else "")
        found.same("quarantine", row, "resolved_at", ended[-1]["at"] if ended else None)
        found.same("quarantine", row, "resolved_by_ref", ended[-1]["actor_ref"] if ended else "")
        said = [one for one in entries if one["action"] == "quarantine.found"]
        found.same("quarantine", row, "found_by_ref", said[-1]["actor_ref"] if said else "")
        if not found.erased(row["id"]):
            _case_said(found, row, said, ended, entries)
    found.all_there("quarantine", "case")


def _case_said(found: Comparison, row: Any, said: list[Any], ended: list[Any], entries: list[Any]) -> None:
    last = said[-1]["payload"] if said else {}
    linked = [one["payload"] for one in entries if one["action"] == "quarantine.incident_linked"]
    found.same("quarantine", row, "finding", last.get("finding", ""))
    found.same("quarantine", row, "evidence_ref", last.get("evidence_ref", ""))
    found.same("quarantine", row, "incident_ref", linked[-1].get("incident_ref", "") if linked else "")
    found.same("quarantine", row, "follow_up_id", ended[-1]["payload"].get("follow_up") if ended else None)


def _runs(found: Comparison, organization: Any) -> None:
    for row in found.rows["instance"]:
        entries = [one for one in found.about(row["id"]) if "status" in (one["payload"] or {})]
        found.same("instance", row, "organization_id", organization)
        if row["id"] in {one["subject_id"] for one in found.entries}:
            found.tied.add(("instance", row["id"], "id"))
        elif not found.erased(row["id"]):
            found.unexplained("instance", row)
        if found.erased(row["id"]) or not entries:
            found.withheld += 1
            continue
        last = max(entries, key=lambda one: one["payload"].get("number", 0))
        found.same("instance", row, "status", last["payload"]["status"])
        if last["payload"]["status"] == "halted" and last["action"] == "workflow.halted":
            found.same("instance", row, "halt_reason", last["reason_code"])
        if last["action"] in ("workflow.completed", "workflow.cancelled"):
            found.same("instance", row, "completed_at", last["at"])
        if any(row["definition_sha256"] == one["sha256"] for one in found.rows["snapshots"]):
            continue
        told = f"run {row['id']}: the snapshot of its definition is missing"
        found.differ(SNAPSHOT_TABLE, row["definition_sha256"], "", told)


def _steps(found: Comparison, organization: Any) -> None:
    """The way of a run stands in its entries: `ai_review completed on_complete`."""
    said: dict[str, list[str]] = {}
    for instance in found.rows["instance"]:
        if found.erased(instance["id"]):
            return
        entries = [one for one in found.about(instance["id"]) if "number" in (one["payload"] or {})]
        for entry in sorted(entries, key=lambda one: one["payload"]["number"]):
            for line in entry["payload"].get("path", []):
                step, _, words = line.partition(" ")
                if words.startswith("completed "):
                    said.setdefault(step, []).append(words[len("completed ") :])
    for step in {row["step_id"] for row in found.rows["steps"]}:
        rows = [row for row in found.rows["steps"] if row["step_id"] == step and row["status"] == "completed"]
        told = said.get(step, [])
        # The other way round is no difference: a step that halts the run is completed without an outcome.
        if len(told) > len(rows):
            last = [row for row in found.rows["steps"] if row["step_id"] == step][-1]
            found.same("steps", last, "status", "completed")
        for row, outcome in zip(rows, told):
            found.same("steps", row, "step_id", step)
            found.same("steps", row, "outcome", outcome)
            found.same("steps", row, "status", "completed")


def _interventions(found: Comparison, organization: Any) -> None:
    entries = [entry for entry in found.entries if entry["action"] == "workflow.intervened"]
    table = TABLES["interventions"][1]
    if len(entries) != len(found.rows["interventions"]):
        told = "interventions: rows and ledger entries differ in number"
        found.differ(table, "", "", told, str(len(entries)), str(len(found.rows["interventions"])))
    facts = ("at", "actor_kind", "actor_ref", "reason_code")
    for row in found.rows["interventions"]:
        entry = next((one for one in entries if all(row[name] == one[name] for name in facts)), None)
        if entry is None:
            found.unexplained("interventions", row)
            continue
        found.tied.update(("interventions", row["id"], name) for name in facts)
        if entry["payload"] is not None:
            found.same("interventions", row, "action", entry["payload"].get("action"))
            found.same("interventions", row, "bulk_id", entry["payload"].get("bulk"))
            found.same("interventions", row, "note_sha256", entry["payload"].get("note_sha256", ""))


def _events(found: Comparison, organization: Any) -> None:
    known = {row["number"]: row for row in found.rows["events"]}
    ids = {row["id"] for row in found.rows["instance"]}
    for entry in found.entries:
        payload = entry["payload"] or {}
        if entry["subject_id"] not in ids or "number" not in payload:
            continue
        row = known.get(payload["number"])
        if row is None:
            told = f"event {payload['number']}: it is not what the ledger says"
            found.differ(TABLES["events"][1], payload["number"], "", told, "it was written", "there is no row")
            continue
        found.same("events", row, "number", payload["number"])
        found.same("events", row, "event_type", payload["event"])
        found.same("events", row, "event_id", payload.get("event_id"))
        found.same("events", row, "received_at", entry["at"])
        found.same("events", row, "outcome", "advanced")


def _people(found: Comparison, organization: Any) -> None:
    listed = set()
    for row in found.rows["people"]:
        opening = row["opening"] if row["kind"] == "person" else None
        if opening is not None:
            hashed = sha256(_hex(opening["salt"]) + opening["user_id"].encode()).hex()
            if hashed != row["reference"]:
                told = f"person {row['reference']}: the opening does not fit the commitment"
                found.differ(PEOPLE_TABLE, row["reference"], "salt", told)
        listed.add(row["reference"])
    for entry in found.entries:
        if entry["actor_kind"] == "person" and entry["actor_ref"] not in listed:
            told = f"person {entry['actor_ref']}: they are in the ledger and not in people.json"
            found.differ(PEOPLE_TABLE, entry["actor_ref"], "", told)


def _images(found: Comparison, organization: Any) -> None:
    """Each row that the bundle shows as a whole, against the digest that a leaf covers."""
    items: dict[tuple[int, str], dict[int, tuple[str, bytes]]] = {}
    for entry in [*found.sealed, *found.carriers]:
        for part in entry.get("rows") or []:
            for item in bound_rows(_bytes(part))[1]:
                items.setdefault((item.table, item.id), {})[item.version] = (entry["id"], item.digest)
    files = {table: file for file, (_, table, _) in TABLES.items()}
    used = set()
    for one in found.images:
        known = items.get((one["table"], one["id"]), {})
        carrier, digest = known.get(one["version"], ("", b""))
        used.add(carrier)
        _image(found, one, files.get(one["name"], ""), carrier, digest, max(known, default=0))
    for entry in found.carriers:
        if entry["id"] not in used:
            found.differ(LEDGER_TABLE, entry["id"], "", f"entry {entry['id']}: nothing in the bundle needs it")


def _image(found: Comparison, one: Mapping[str, Any], file: str, carrier: str, digest: bytes, newest: int) -> None:
    word = TABLES[file][0] if file else one["name"]
    if carrier != one["entry"]:
        told = f"{word} {one['id']}: no leaf covers this version of it"
        found.differ(one["name"], one["id"], "row_version", told, "no such version", str(one["version"]))
        return
    if newest > one["version"] or not any(digest):
        told = f"{word} {one['id']}: the ledger knows a newer version of it"
        found.differ(one["name"], one["id"], "row_version", told, str(newest), str(one["version"]))
        return
    if one["image"] is None:  # what it holds is not for everybody who gets the bundle
        return
    if row_digest(one["image"], _bytes(one["salt"]) if one["salt"] else b"") != digest:
        told = f"{word} {one['id']}: the row is not the one that the ledger covers"
        found.differ(one["name"], one["id"], "", told, f"sha256 {digest.hex()[:12]}", "another digest")
        return
    if file:
        _image_fields(found, file, one)


# Of a decision whose row has only what differs from a frame that many share. Their hashes are in the row and in the
# ledger; results come out again when the decision is made again.
_FRAMED = frozenset(("environment", "request", "results"))


def _image_fields(found: Comparison, file: str, one: Mapping[str, Any]) -> None:
    row = next((row for row in found.rows[file] if row["id"] == one["id"]), None)
    if row is None:
        found.missing(file, one["id"])
        return
    image, names = json.loads(one["image"]), TABLES[file][2]
    for name in row:
        column = names.get(name, name)
        if image.get("frame_sha256") is not None and name in _FRAMED:
            continue
        if column in image:
            found.same(file, row, name, image_value(image[column], row[name]))
        elif name[: -len("_sha256")] in image and name.endswith("_sha256"):
            found.same(file, row, name, sha256(canonical(image[name[: -len("_sha256")]])).hex())
    found.bound.add((file, one["id"]))


# PostgreSQL leaves out zeros at the end of a fraction, and the minutes of a zone where there are none.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::\d\d)?)")


def image_value(value: Any, shown: Any) -> Any:
    """PostgreSQL's JSON of a value as the bundle writes it: times in UTC with microseconds, large integers as text."""
    found = _MOMENT.fullmatch(value) if isinstance(value, str) and isinstance(shown, str) and value != shown else None
    if found is not None:
        day, clock, fraction, zone = found.groups()
        text = f"{day}T{clock}.{(fraction or '').ljust(6, '0')}{zone if len(zone) == 6 else zone + ':00'}"
        return datetime.fromisoformat(text).astimezone(timezone.utc).isoformat(timespec="microseconds")
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(shown, str):
        return str(value)
    return value


# -- the command -----------------------------------------------------------------------------------------------------
def _key_texts(asked: argparse.Namespace) -> tuple[str, str]:
    """The keys of the log and those of witnesses; without `--witness-key`, those of the file of keys."""

    def text(given: str) -> str:
        return Path(given).read_text() if given and Path(given).is_file() else given

    try:
        if not asked.keys:
            return text(asked.public_key), text(asked.witness_key)
        content = Path(asked.keys).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable("the key cannot be read") from error
    return keys_read(content), text(asked.witness_key) or "\n".join(map(str, json.loads(content).get("witnesses", [])))


def report_lines(report: Report) -> list[str]:
    """What the command prints."""
    if not report.valid:
        return ["NOT VALID", *(f"  - {fault}" for fault in report.faults)]
    said = "authentic" if report.key_was_given else "consistent, but whose is unknown"
    lines = [f"{said}: {report.subject} of {report.organization}", *(f"  checked {line}" for line in report.checked)]
    for vote in report.votes:
        how = "unsigned; its contract does not ask for a signature"
        if vote["signed"]:
            since = f"registered {vote['passkey_registered_at']} by ledger entry {vote['passkey_registered_by']}"
            how = f"signed by its person, passkey {since}"
        lines.append(f"  vote {vote['vote']} ({vote['verdict']}): {how}")
    for file, tie in report.ties.items():
        if tie["not_tied"]:
            lines.append(f"  not tied to the ledger, in {file}.json: {', '.join(sorted(tie['not_tied']))}")
    known = "a key that was given" if report.key_was_given else "the bundle's own key: anybody can make one"
    lines.append(f"  signed by {report.signer}, SHA-256 of the key {report.fingerprint} ({known})")
    if not report.key_was_given:
        lines.append("  give the key that you got from Holdpoint on another way: --public-key or --keys")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Checks a Holdpoint evidence bundle.",
        epilog="Exit code 0: authentic; 1: not valid; 2: it could not be checked; 3: consistent, but whose is unknown.",
    )
    parser.add_argument("bundle", help="the zip file")
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--public-key", default="", help="keys of the log and handovers: a file, or the text")
    given.add_argument("--keys", default="", help="a holdpoint-keys.json that you keep")
    parser.add_argument(
        "--witness-key", default="", help="verifier keys of witnesses that you know: a file, or the text"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    if IS_COPY:
        print(COPY_NOTE, file=sys.stderr)
    try:
        public_key, witness_key = _key_texts(asked)
        report = verify(Path(asked.bundle).read_bytes(), public_key=public_key, witness_key=witness_key)
    except (OSError, Unusable) as error:
        print(f"cannot be checked: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps({"result": report.result, "valid": report.valid, **vars(report)}, indent=2))
    else:
        print("\n".join(report_lines(report)))
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
