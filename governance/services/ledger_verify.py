"""Checks the whole record: every entry's hash, every leaf, every signed head. Reads only; names what does not fit."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection

from governance.ledger.entry import EntryHeader, entry_hash, payload_hash
from governance.merkle import checkpoint_verify, extend, frontier_root, leaf_hash
from governance.merkle.checkpoint import CheckpointInvalid
from governance.models import LedgerCheckpoint, LedgerKey
from governance.services.erasure_verify import erasures_verify
from governance.services.seal import NO_LEAF

CHUNK = 20_000
MOST_NAMED = 100
HEADER = tuple(EntryHeader.__slots__)
ROWS = f"""
SELECT l.position, l.hash, {", ".join(f"e.{name}" for name in HEADER)}, e.payload, e.nonce, e.payload_sha256, e.sha256
FROM governance_ledgerleaf l LEFT JOIN governance_ledgerentry e ON e.id = l.entry_id
WHERE l.position >= %s AND l.position < %s ORDER BY l.position
"""  # noqa: S608
UNSEALED = f"SELECT count(*) FROM governance_ledgerentry e WHERE {NO_LEAF}"  # noqa: S608


@dataclass(slots=True)
class Verified:
    """`wrong` names at most MOST_NAMED places; `faults` counts them all."""

    entries: int = 0
    heads: int = 0
    unsealed: int = 0
    erased: int = 0  # payloads, by order
    faults: int = 0
    wrong: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        self.faults += 1
        if len(self.wrong) < MOST_NAMED:
            self.wrong.append(text)


def ledger_verify(*, processes: int = 1, progress: Callable[[int, int], None] = lambda done, total: None) -> Verified:
    """`progress(done, total)` in entries."""
    verified = Verified()
    heads = list(LedgerCheckpoint.objects.order_by("size"))
    keys = {
        key.id: (key.name, Ed25519PublicKey.from_public_bytes(bytes(key.public_key))) for key in LedgerKey.objects.all()
    }
    total = heads[-1].size if heads else 0
    frontier: list[bytes] = []
    waiting, size = iter(heads), 0
    head = next(waiting, None)
    for start, hashes, wrong in _chunks(total, processes):
        for text in wrong:
            verified.fault(text)
        while head is not None and head.size <= start + len(hashes):
            part = hashes[size - start : head.size - start]
            _, frontier = extend(size=size, frontier=frontier, leaves=part)
            size = head.size
            _check_head(head, frontier_root(frontier), keys, verified)
            head = next(waiting, None)
        _, frontier = extend(size=size, frontier=frontier, leaves=hashes[size - start :])
        size = start + len(hashes)
        progress(size, total)
    verified.entries = size
    if head is not None:
        verified.fault(f"the head of {head.size} entries is signed, and only {size} are there")
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED)
        (verified.unsealed,) = cursor.fetchone()
    erasures = erasures_verify()
    verified.erased = erasures.count
    for text in erasures.wrong:
        verified.fault(text)
    return verified


def _check_head(
    head: LedgerCheckpoint, root: bytes, keys: dict[str, tuple[str, Ed25519PublicKey]], verified: Verified
) -> None:
    verified.heads += 1
    try:
        signed = checkpoint_verify(head.text, keys=list(keys.values()))
    except CheckpointInvalid as error:
        verified.fault(f"head of {head.size} entries: {error}")
        return
    if (signed.size, signed.root) != (head.size, bytes(head.root)):
        verified.fault(f"head of {head.size} entries: the row is not what was signed")
    if signed.root != root:
        verified.fault(f"head of {head.size} entries: the entries give another root than the one that was signed")


def _chunks(total: int, processes: int) -> Iterator[tuple[int, list[bytes], list[str]]]:
    starts = range(0, total, CHUNK)
    if processes < 2 or total <= CHUNK:
        for start in starts:
            yield start, *check_range(start, min(start + CHUNK, total))
        return
    connection.close()
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        ends = [min(start + CHUNK, total) for start in starts]
        for start, found in zip(starts, pool.map(check_range, starts, ends), strict=True):
            yield start, *found


def check_range(start: int, end: int) -> tuple[list[bytes], list[str]]:
    """Leaf hashes as the entries give them, and what is wrong. A missing leaf leaves a hole that no root survives."""
    hashes: list[bytes] = []
    wrong: list[str] = []
    expected = start
    with connection.cursor() as cursor:
        cursor.execute(ROWS, [start, end])
        for row in cursor:
            position, stored, *entry = row
            _missing(expected, position, hashes, wrong)
            expected = position + 1
            hashes.append(_leaf(position, bytes(stored), entry, wrong))
    _missing(expected, end, hashes, wrong)
    return hashes, wrong


def _missing(start: int, end: int, hashes: list[bytes], wrong: list[str]) -> None:
    if start < end:
        wrong.append(f"leaf {start} is missing" if end - start == 1 else f"leaves {start} to {end - 1} are missing")
        hashes.extend([bytes(32)] * (end - start))


def _leaf(position: int, stored: bytes, entry: list[Any], wrong: list[str]) -> bytes:
    *header, payload, nonce, payload_sha256, sha256 = entry
    payload = json.loads(payload) if isinstance(payload, str) else payload
    if header[0] is None:
        wrong.append(f"leaf {position}: its entry is gone")
        return stored
    facts = EntryHeader(*header)
    if payload is not None and payload_hash(payload=payload, nonce=bytes(nonce)) != bytes(payload_sha256):
        wrong.append(f"leaf {position}: the payload of entry {facts.id} was changed")
    found = entry_hash(header=facts, payload_sha256=bytes(payload_sha256))
    if found != bytes(sha256):
        wrong.append(f"leaf {position}: entry {facts.id} was changed")
    if leaf_hash(found) != stored:
        wrong.append(f"leaf {position}: it is not the leaf of entry {facts.id}")
    return leaf_hash(found)
