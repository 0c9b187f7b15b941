"""A small bundle made without a database: a log of a few entries, signed, and a person."""

from hashlib import sha256
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from governance.sealing.rules.merkle import (
    Checkpoint,
    checkpoint_sign,
    extend,
    frontier_root,
    inclusion_proof,
    verifier_key,
)
from sdk import holdpoint_verify as verifier

NAME = "holdpoint.test/ledger"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC = verifier_key(NAME, KEY.public_key())
ORGANIZATION, SUBJECT, BUNDLE = (str(UUID(int=number)) for number in (1, 2, 3))
SALT, USER = bytes(32), str(UUID(int=9))
PERSON = sha256(SALT + USER.encode()).hexdigest()
AT = "2026-11-16T12:00:00.000000+00:00"


def entry(number: int, action: str, payload: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    nonce = bytes([number]) * 16
    row = {
        "id": str(UUID(int=100 + number)),
        "organization": ORGANIZATION,
        "action": action,
        "subject_type": "attempt",
        "subject_id": SUBJECT,
        "actor_kind": "person",
        "actor_ref": PERSON,
        "reason_code": "",
        "request_id": "",
        "trace_id": "",
        "at": AT,
        "payload": payload,
        "nonce": nonce.hex(),
        "payload_sha256": verifier.payload_sha256(payload, nonce).hex(),
    } | changes
    return row | {"sha256": verifier.entry_sha256(row).hex(), "rows": row.get("rows", [])}


def content(**changes: bytes) -> dict[str, bytes]:
    """One person and otherwise nothing; `changes` by name without its ending."""
    files = dict.fromkeys(verifier.ROWS, b"[]")
    opening = {"name": "rita", "salt": SALT.hex(), "user_id": USER}
    files["people.json"] = verifier.canonical([{"kind": "person", "reference": PERSON, "opening": opening}])
    files |= {"report.html": b"<!DOCTYPE html>\n", "verify.py": b"pass\n", verifier.IMAGES: b"[]"}
    return files | {next(name for name in files if name.startswith(stem)): data for stem, data in changes.items()}


def proven(entries: list[dict[str, Any]], *, key: Ed25519PrivateKey = KEY) -> tuple[list[dict[str, Any]], str]:
    """As if the log held two strangers' entries, then these, then one more stranger's."""
    strangers = [sha256(bytes([number])).digest() for number in range(3)]
    hashes = [*strangers[:2], *(verifier.leaf_data(one) for one in entries), strangers[2]]
    leaves = [sha256(b"\x00" + one).digest() for one in hashes]
    nodes, frontier = extend(size=0, frontier=[], leaves=leaves)
    known = dict(nodes)
    found = []
    for position, row in enumerate(entries, start=2):
        proof = inclusion_proof(index=position, size=len(leaves), read=lambda wanted: [known[one] for one in wanted])
        found.append(row | {"position": position, "proof": [one.hex() for one in proof]})
    head = Checkpoint(NAME, len(leaves), frontier_root(frontier))
    return found, checkpoint_sign(head, name=NAME, key=key)


def bundle(
    files: dict[str, bytes] | None = None,
    entries: list[dict[str, Any]] | None = None,
    *,
    anchored: dict[str, bytes] | None = None,
    key: Ed25519PrivateKey = KEY,
) -> bytes:
    """`anchored`: what the ledger names, should the bundle hold something else."""
    files = files or content()
    entries = [entry(1, "attempt.received", {"digest": "ab"})] if entries is None else entries
    said = verifier.anchor_payload(
        anchored or files, entries, organization="clinic", subject={"kind": "attempt", "id": SUBJECT}
    )
    anchor = entry(
        99, verifier.ANCHOR, said, subject_type="evidence_bundle", subject_id=BUNDLE, actor_kind="system", actor_ref=""
    )
    rows, checkpoint = proven([*entries, anchor], key=key)
    return verifier.bundle_write(files, rows, checkpoint, verifier_key(NAME, key.public_key()))


def rewritten(data: bytes, **changes: Any) -> bytes:
    """By somebody who knows the format and cannot sign: changed files, a manifest and a zip that fit them."""
    files, _ = verifier.zip_read(data)
    files |= {name: change(files[name]) for name, change in changes.items()}
    files[verifier.MANIFEST] = verifier.canonical(verifier.manifest_of(files))
    return verifier.zip_write({name: files[name] for name in verifier.NAMES})
