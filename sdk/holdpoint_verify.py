#!/usr/bin/env python3
"""Checks a Holdpoint evidence bundle without Holdpoint: one file, Python 3.9 or newer, and `cryptography`.

    python holdpoint_verify.py bundle.zip [--public-key FILE_OR_TEXT] [--witness-key FILE_OR_TEXT] [--json]

Says `valid` and what was checked, or names what is wrong. Exit code 0: valid; 1: not valid; 2: it could not be checked.
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
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

FORMAT = "holdpoint-evidence-v1"
ENTRY_FORMAT = "holdpoint-ledger-v1"
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
CONTENT = (*ROWS, "report.html", "verify.py")
ENTRIES, CHECKPOINT, KEY = "ledger/entries.json", "ledger/checkpoint.txt", "ledger/public-key.txt"
MANIFEST = "manifest.json"
NAMES = (MANIFEST, *sorted((*CONTENT, ENTRIES, CHECKPOINT, KEY)))
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
    hashed = {name: entry[name] for name in HEADER}
    return sha256(canonical({**hashed, "format": ENTRY_FORMAT, "payload_sha256": entry["payload_sha256"]}))


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
    return {
        "format": FORMAT,
        "organization": organization,
        "subject": dict(subject),
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in CONTENT},
        "entries": {"count": len(entries), "sha256": entries_sha256(entries)},
    }


def manifest_of(files: Mapping[str, bytes]) -> dict[str, Any]:
    """From the other files alone: nothing can be written into a manifest that they do not say."""
    entries = read_canonical_json(files[ENTRIES])
    anchor, head = entries[-1], head_read(files[CHECKPOINT].decode())
    return {
        "format": FORMAT,
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
            for name in NAMES
            if name != MANIFEST
        },
    }


def bundle_write(
    content: Mapping[str, bytes], entries: Sequence[Mapping[str, Any]], checkpoint: str, key: str
) -> bytes:
    """The whole bundle. `entries` with their proofs, the anchor last."""
    files = {name: content[name] for name in CONTENT}
    files[ENTRIES] = canonical(entries)
    files[CHECKPOINT] = checkpoint.encode()
    files[KEY] = key.strip().encode() + b"\n"
    files[MANIFEST] = canonical(manifest_of(files))
    return zip_write({name: files[name] for name in NAMES})


# -- checking --------------------------------------------------------------------------------------------------------
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
    cosigned_by: list[str] = field(default_factory=list)
    witnesses_known: int = 0
    votes: list[dict[str, Any]] = field(default_factory=list)
    """For each vote: who, whether it is signed by them and has to be, and since when their passkey is registered."""
    not_signed: list[str] = field(default_factory=list)
    """Of the faults: those that say that a vote is not signed by its person."""

    @property
    def valid(self) -> bool:
        return not self.faults

    def fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)


def verify(data: bytes, *, public_key: str = "", witness_key: str = "") -> Report:
    """Everything that can be found out about these bytes. Raises only Unusable."""
    keys, witnesses = _given_keys(public_key), _given_witnesses(witness_key)
    report = Report(key_was_given=bool(keys))
    files, wrong = zip_read(data)
    report.faults += wrong
    missing, extra = [name for name in NAMES if name not in files], [name for name in files if name not in NAMES]
    report.faults += [f"{name}: it is missing" for name in missing]
    report.faults += [f"{name!a}: it does not belong into a bundle" for name in extra]
    if not missing and not extra and tuple(files) != NAMES:
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


def _given_keys(public_key: str) -> list[PublicKey]:
    lines = [line.strip() for line in public_key.splitlines() if line.strip() and not line.startswith("#")]
    try:
        keys = [key_read(line) for line in lines if not line.startswith("handover ")]
        return keys_followed(keys, [key_handover_read(line) for line in lines if line.startswith("handover ")])
    except Malformed as error:
        raise Unusable(f"the public key that was given: {error}") from error


def _check_manifest(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    manifest = read_canonical_json(files[MANIFEST])
    if manifest.get("format") != FORMAT:
        raise Malformed("it is of a format that this verifier does not know")
    for name in NAMES:
        said = manifest["files"].get(name) if name != MANIFEST else None
        if said is not None and said.get("sha256") != hashlib.sha256(files[name]).hexdigest():
            report.fault(f"{name}: it is not the file that the manifest names")
    report.bundle, report.subject = str(manifest["bundle"]), "{kind} {id}".format(**manifest["subject"])
    report.organization = "{slug} ({id})".format(**manifest["organization"])
    if manifest != manifest_of(files):
        raise Malformed("it does not say what the files say")
    report.checked.append(f"{len(NAMES)} files against the manifest, and the zip byte for byte")


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
    erased = 0
    for number, entry in enumerate(entries):
        try:
            _check_entry(entry, head)
        except (Malformed, KeyError, TypeError, ValueError, AttributeError) as error:
            said = str(error) if isinstance(error, Malformed) else "not of the expected shape"
            report.fault(f"{ENTRIES}: entry {number}: {said}")
        erased += entry.get("payload") is None
    for name in ("id", "position"):
        if len({entry[name] for entry in entries}) != len(entries):
            report.fault(f"{ENTRIES}: two entries have the same {name}")
    # A person's passkeys belong to no organization.
    owned = [entry for entry in entries if entry["organization"] is not None or not _is_passkey(entry)]
    if len({entry["organization"] for entry in owned}) != 1 or owned[0]["organization"] is None:
        report.fault(f"{ENTRIES}: they are not all of one organization")
    told = f" ({erased} with an erased payload)" if erased else ""
    report.checked.append(f"{len(entries)} ledger entries{told}: their hashes, and their inclusion in the signed head")


def _is_passkey(entry: Mapping[str, Any]) -> bool:
    return entry["subject_type"] == "passkey" and entry["action"] in (REGISTERED, REMOVED)


def _check_entry(entry: Mapping[str, Any], head: Head) -> None:
    if set(entry) != {*HEADER, "payload", "nonce", "payload_sha256", "sha256", "position", "proof"}:
        raise Malformed("it has other fields than an entry has")
    _hex(entry["payload_sha256"])
    if entry["payload"] is not None:
        if payload_sha256(entry["payload"], _hex(entry["nonce"], 16)).hex() != entry["payload_sha256"]:
            raise Malformed("its payload was changed")
    elif entry["nonce"] is not None:
        raise Malformed("its payload is erased and its nonce is not")
    found = entry_sha256(entry)
    if found != _hex(entry["sha256"]):
        raise Malformed("it was changed")
    if type(entry["position"]) is not int:
        raise Malformed("its position is not a number")
    proof = [_hex(sibling) for sibling in entry["proof"]]
    if root_from(sha256(b"\x00" + found), entry["position"], head.size, proof) != head.root:
        raise Malformed("it is not in the signed head")


def _check_anchor(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    entries = read_canonical_json(files[ENTRIES])
    anchor = entries[-1]
    if anchor["action"] != ANCHOR or anchor["subject_type"] != "evidence_bundle" or anchor["payload"] is None:
        raise Malformed("the last ledger entry does not say what the bundle holds")
    payload = anchor["payload"]
    said = anchor_payload(files, entries[:-1], organization=payload["organization"], subject=payload["subject"])
    for name in CONTENT:
        if payload["files"].get(name) != said["files"][name]:
            report.fault(f"{name}: it is not the file that the ledger names")
    if payload["entries"] != said["entries"]:
        report.fault(f"{ENTRIES}: they are not all the entries that the ledger names, in their order")
    if payload != said:
        raise Malformed("it does not say what the bundle holds")
    report.checked.append(f"{len(CONTENT)} files against what the ledger recorded about them")


def _check_rows(files: Mapping[str, bytes], report: Report, keys: list[PublicKey]) -> None:
    rows = {name[: -len(".json")]: read_canonical_json(files[name]) for name in ROWS}
    book = Book(read_canonical_json(files[ENTRIES]), report)
    organization = book.entries[-1]["organization"]
    checks = (_decisions, _attempts, _transitions, _votes, _signatures, _executions, _interventions, _events, _people)
    for check in checks:
        try:
            check(rows, book, organization)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            report.fault(f"{check.__name__[1:]}: not of the expected shape ({type(error).__name__})")
    if rows["costs"] != costs_of(rows["receipts"]):
        report.fault("costs.json: they are not the sum of the receipts")
    some = ", ".join(f"{len(rows[name])} {name}" for name in ("decisions", "transitions", "votes", "receipts"))
    told = f" ({book.withheld} comparisons left out: the payload is erased)" if book.withheld else ""
    report.checked.append(f"the rows against the entries that record them: {some}{told}")


class Book:
    """The entries, to be looked up."""

    def __init__(self, entries: list[dict[str, Any]], report: Report) -> None:
        self.entries = entries
        self.report = report
        self.withheld = 0

    def naming(self, key: str, value: str) -> dict[str, Any] | None:
        """The entry whose payload names it."""
        return next((entry for entry in self.entries if (entry["payload"] or {}).get(key) == value), None)

    def agree(self, what: str, key: str, row: Mapping[str, Any], **same: Any) -> None:
        """`same`: name in the payload (or header, with a leading `_`) and the row's value."""
        entry = self.naming(key, row["id"])
        if entry is None:
            if any(one["payload"] is None for one in self.entries):
                self.withheld += 1
            else:
                self.report.fault(f"{what} {row['id']}: no ledger entry records it")
            return
        for name, value in same.items():
            said = entry[name[1:]] if name.startswith("_") else entry["payload"].get(name)
            if said != value:
                self.report.fault(f"{what} {row['id']}: its {name.lstrip('_')} is not what the ledger says")

    def all_there(self, what: str, key: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Nothing that the ledger names may be missing."""
        known = {row["id"] for row in rows}
        for entry in self.entries:
            named = (entry["payload"] or {}).get(key)
            if named is not None and named not in known:
                self.report.fault(f"{what} {named}: the ledger names it and it is not there")


def _decisions(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    snapshots = {}
    for row in rows["snapshots"]:
        if sha256(canonical(row["document"])).hex() != row["sha256"]:
            book.report.fault(f"snapshot {row['sha256']}: its content was changed")
        snapshots[row["sha256"]] = row["document"]
    for row in rows["decisions"]:
        erased = row["request"] is None and row["request_sha256"] == ""
        book.withheld += erased
        for name in ("environment",) if erased else ("request", "environment"):
            if sha256(canonical(row[name])).hex() != row[f"{name}_sha256"]:
                book.report.fault(f"decision {row['id']}: its {name} was changed")
        environment = row["environment"]
        for name in ("contract_sha256", "policy_sha256", "region_sha256"):
            if environment.get(name) and environment[name] not in snapshots:
                book.report.fault(f"decision {row['id']}: the snapshot of its {name[:-7]} is missing")
        if environment["organization"]["id"] != organization:
            book.report.fault(f"decision {row['id']}: it is of another organization")
        if erased:
            continue
        hashes = {name: row[name] for name in ("request_sha256", "environment_sha256")}
        book.agree("decision", "decision", row, rule=row["rule_id"], _reason_code=row["reason_code"], **hashes)


def _attempts(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    decided = {
        row["id"]: "" if row["request"] is None else sha256(canonical(row["request"]["action"])).hex()
        for row in rows["decisions"]
    }
    for row in rows["envelope"]:
        received = [e for e in book.entries if e["action"] == "attempt.received" and e["subject_id"] == row["id"]]
        if len(received) != 1:
            book.report.fault(f"attempt {row['id']}: the ledger does not say once that it was asked for")
        elif received[0]["payload"] is not None and received[0]["payload"].get("digest") != row["action_digest"]:
            book.report.fault(f"attempt {row['id']}: its action is not what the ledger says")
        if row["decision_id"] not in decided:
            book.report.fault(f"attempt {row['id']}: its decision is missing")
        elif decided[row["decision_id"]] != row["action_digest"]:
            book.report.fault(f"attempt {row['id']}: its action is not the one that was decided about")
        if row["organization_id"] != organization:
            book.report.fault(f"attempt {row['id']}: it is of another organization")


def _transitions(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    for attempt in rows["envelope"]:
        moves = [row for row in rows["transitions"] if row["attempt_id"] == attempt["id"]]
        entries = [e for e in book.entries if e["subject_id"] == attempt["id"] and e["action"] in MOVES]
        state = "received"
        for move in moves:
            if move["from_state"] != state:
                book.report.fault(f"transition {move['id']}: it does not begin where the one before it ended")
            state = move["to_state"]
        if state != attempt["state"]:
            book.report.fault(f"attempt {attempt['id']}: its transitions do not lead to its state")
        if len(moves) != len(entries):
            book.report.fault(f"attempt {attempt['id']}: transitions and ledger entries differ in number")
        for move, entry in zip(moves, entries):
            facts = ("at", "actor_kind", "actor_ref", "reason_code")
            if entry["action"] not in ACTIONS_INTO[move["to_state"]] or any(move[f] != entry[f] for f in facts):
                book.report.fault(f"transition {move['id']}: it is not what the ledger says")


def _votes(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    for row in rows["votes"]:
        book.agree(
            "vote",
            "vote",
            row,
            verdict=row["verdict"],
            action_digest=row["action_digest"],
            on_behalf_of=row["on_behalf_of_ref"] or None,
            note_sha256=row["note_sha256"] or None,
            _actor_ref=row["voter_ref"],
            _reason_code=row["reason_code"],
            _at=row["at"],
        )
    book.all_there("vote", "vote", rows["votes"])


def _signatures(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    """Whether each vote is signed by its person. Bundles from before signatures have none and ask for none."""
    asked = _asked_for(rows)
    for row in rows["votes"]:
        signed, needed = row.get("signature"), row["review_id"] in asked
        why, key = ("it has no signature", None) if signed is None else _signed_by_person(row, signed, book)
        report = {"vote": row["id"], "person": row["voter_ref"], "verdict": row["verdict"], "required": needed}
        report["signed"] = not why
        report["passkey_registered_at"] = key["at"] if key else None
        report["passkey_registered_by"] = key["id"] if key else None
        book.report.votes.append(report)
        if why and (needed or signed is not None):
            fault = f"vote {row['id']}: it is not signed by its person ({row['voter_ref']}): {why}"
            book.report.fault(fault)
            book.report.not_signed.append(fault)
    count = sum(1 for vote in book.report.votes if vote["signed"])
    book.report.checked.append(
        f"the signatures under the votes: {count} of {len(rows['votes'])} signed by their person"
    )


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
    row: Mapping[str, Any], signed: Mapping[str, Any], book: Book
) -> tuple[str, Mapping[str, Any] | None]:
    """What is wrong with the signature (empty: nothing), and the ledger entry of the key's registration."""
    voted = book.naming("vote", row["id"])
    key = next((e for e in book.entries if e["id"] == signed["registered_entry"] and e["action"] == REGISTERED), None)
    if key is None or key["subject_id"] != signed["passkey"] or not _is_passkey(key):
        return "no ledger entry registers its passkey", None
    if key["payload"] is None:
        return "the registration of its passkey is erased", key
    wrong = _out_of_time(signed, voted, key, book) if voted is not None else ""
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


def _out_of_time(signed: Mapping[str, Any], voted: Mapping[str, Any], key: Mapping[str, Any], book: Book) -> str:
    """By the order of the sealed entries: the key was there when the vote was cast, and the vote had this signature."""
    removed = [e for e in book.entries if e["action"] == REMOVED and e["subject_id"] == signed["passkey"]]
    if key["position"] > voted["position"]:
        return "its passkey was registered after the vote"
    if any(entry["position"] < voted["position"] for entry in removed):
        return "its passkey was removed before the vote"
    if voted["payload"].get("signature_sha256") != sha256(canonical(signed)).hex():
        return "it is not the signature that the ledger names"
    return ""


def _executions(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    for row in rows["intents"]:
        same = {name: row[name] for name in ("number", "fence", "adapter", "effect_key")}
        book.agree("intent", "intent", row, digest=row["action_digest"], _subject_id=row["attempt_id"], **same)
    for row in rows["receipts"]:
        book.agree("receipt", "receipt", row, _subject_id=row["attempt_id"], _at=row["at"])
    book.all_there("intent", "intent", rows["intents"])
    book.all_there("receipt", "receipt", rows["receipts"])


def _interventions(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    entries = [entry for entry in book.entries if entry["action"] == "workflow.intervened"]
    if len(entries) != len(rows["interventions"]):
        book.report.fault("interventions: rows and ledger entries differ in number")
    for row in rows["interventions"]:
        facts = ("at", "actor_kind", "actor_ref", "reason_code")
        if not any(all(row[f] == entry[f] for f in facts) for entry in entries):
            book.report.fault(f"intervention {row['id']}: no ledger entry records it")


def _events(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    known = {row["number"]: row["event_type"] for row in rows["events"]}
    ids = {row["id"] for row in rows["instance"]}
    for entry in book.entries:
        payload = entry["payload"] or {}
        if entry["subject_id"] in ids and "number" in payload and known.get(payload["number"]) != payload["event"]:
            book.report.fault(f"event {payload['number']}: it is not what the ledger says")


def _people(rows: Mapping[str, Any], book: Book, organization: str) -> None:
    listed = set()
    for row in rows["people"]:
        opening = row["opening"] if row["kind"] == "person" else None
        if opening is not None:
            hashed = sha256(_hex(opening["salt"]) + opening["user_id"].encode()).hex()
            if hashed != row["reference"]:
                book.report.fault(f"person {row['reference']}: the opening does not fit the commitment")
        listed.add(row["reference"])
    for entry in book.entries:
        if entry["actor_kind"] == "person" and entry["actor_ref"] not in listed:
            book.report.fault(f"person {entry['actor_ref']}: they are in the ledger and not in people.json")


# -- the command -----------------------------------------------------------------------------------------------------
def _key_text(given: str) -> str:
    if not given:
        return ""
    path = Path(given)
    try:
        return path.read_text() if path.is_file() else given
    except OSError as error:
        raise Unusable("the public key cannot be read") from error


def _say(report: Report) -> None:
    if not report.valid:
        print("NOT VALID")
        for fault in report.faults:
            print(f"  - {fault}")
        return
    print(f"valid: {report.subject} of {report.organization}")
    for line in report.checked:
        print(f"  checked {line}")
    for vote in report.votes:
        if vote["signed"]:
            since = f"registered {vote['passkey_registered_at']} by ledger entry {vote['passkey_registered_by']}"
            print(f"  vote {vote['vote']} ({vote['verdict']}): signed by its person, passkey {since}")
        else:
            print(f"  vote {vote['vote']} ({vote['verdict']}): unsigned; its contract does not ask for a signature")
    known = "the key that was given" if report.key_was_given else "compare this fingerprint with one you trust"
    print(f"  signed by {report.signer}, SHA-256 of the key {report.fingerprint} ({known})")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks a Holdpoint evidence bundle.")
    parser.add_argument("bundle", help="the zip file")
    parser.add_argument("--public-key", default="", help="keys of the log and handovers: a file, or the text")
    parser.add_argument(
        "--witness-key", default="", help="verifier keys of witnesses that you know: a file, or the text"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    try:
        report = verify(
            Path(asked.bundle).read_bytes(),
            public_key=_key_text(asked.public_key),
            witness_key=_key_text(asked.witness_key),
        )
    except (OSError, Unusable) as error:
        print(f"cannot be checked: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps({"valid": report.valid, **vars(report)}, indent=2))
    else:
        _say(report)
    return 0 if report.valid else 1


if __name__ == "__main__":
    sys.exit(main())
