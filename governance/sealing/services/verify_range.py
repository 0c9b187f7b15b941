"""Checks one aligned range of the record (entries, nodes, heads) by itself, so that processes can share the work."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection

from governance.ledger.rules.entry import EntryText, entry_hash_of_text, payload_hash
from governance.record.rules.items import CLOCK, clock_read, leaf_data
from governance.sealing.models import LedgerCheckpoint
from governance.sealing.rules.epoch import epoch_of
from governance.sealing.rules.merkle import checkpoint_verify, leaf_hash, node_hash
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.rules.merkle.tree import frontier_nodes
from governance.sealing.rules.moments import clocks_gone_back, moment_fits
from governance.sealing.selectors.keys import key_public, ledger_keys

# A range is a complete subtree of this height, so its root can be combined with those of other ranges. A process keeps
# one range in memory, however long the record is.
LEVELS = 14
CHUNK = 1 << LEVELS
# Faults that are named. A record that was rewritten would otherwise give millions of sentences.
MOST_NAMED = 100
# Stands for a missing leaf. It is the hash of nothing known, so no root above it can be right.
HOLE = bytes(32)
# Columns as text: parsing ids and times would take longer than hashing them. `OFFSET 0` stops the planner from turning
# the look-up per leaf into a join that reads the whole ledger for every range.
ROWS = """
SELECT l.position, l.hash, e.id::text, e.organization_id::text, e.action, e.subject_type, e.subject_id::text,
    e.actor_kind, e.actor_ref, e.reason_code, e.request_id, e.trace_id,
    to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
    e.format, e.earlier::text, e.payload::text, e.nonce, e.payload_sha256, e.sha256, b.rows
FROM governance_ledgerleaf l
LEFT JOIN LATERAL (SELECT * FROM governance_ledgerentry WHERE id = l.entry_id OFFSET 0) e ON TRUE
LEFT JOIN LATERAL (
    SELECT string_agg(rows, ''::bytea ORDER BY part) AS rows FROM governance_boundrows
    WHERE entry_id = l.entry_id) b ON TRUE
WHERE l.position >= %s AND l.position < %s ORDER BY l.position
"""
ANY_MOMENT = "SELECT holdpoint_any_moment()"
# One look-up per level, each a range of the primary key (level, index). `OFFSET 0` as above.
NODES = """
SELECT l, n.index, n.hash FROM generate_series(%s, %s) l CROSS JOIN LATERAL (
    SELECT index, hash FROM governance_ledgernode
    WHERE level = l AND index >= (%s::bigint >> l) AND index < (%s::bigint >> l) OFFSET 0) n
"""


@dataclass(slots=True)
class Faults:
    """`wrong` names at most MOST_NAMED faults; `count` counts all."""

    count: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, text: str, *, places: int = 1) -> None:
        self.count += places
        if len(self.wrong) < MOST_NAMED:
            self.wrong.append(text)

    def merge(self, other: "Faults") -> None:
        self.wrong += other.wrong[: MOST_NAMED - len(self.wrong)]
        self.count += other.count


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A head with a valid signature; `parts` are the complete subtrees of this range up to the head's size."""

    size: int
    root: bytes
    epoch: int
    key: str
    parts: list[bytes]


@dataclass(slots=True)
class Moments:
    """What times the entries of a range tell. `free`: this database lets every time pass, as in tests; the manifest of
    guards names that anywhere else."""

    free: bool
    clocks: list[tuple[int, int]] = field(default_factory=list)

    def fits(self, position: int, facts: EntryText, rows: bytes) -> bool:
        if len(rows) < CLOCK.size:
            return True
        clock = clock_read(rows)
        self.clocks.append((position, clock))
        return self.free or moment_fits(told=datetime.fromisoformat(facts.at), clock=clock, actor_kind=facts.actor_kind)

    def notes(self) -> list[str]:
        words = "the database's clock went back by more than a day before the transaction of leaf"
        return [f"{words} {position}" for position in clocks_gone_back(self.clocks)]


@dataclass(slots=True)
class Checked:
    start: int
    end: int
    frontier: list[bytes]
    heads: list[SignedHead]
    seen: int
    """How many head rows there are, also those that are not signed."""
    faults: Faults
    notes: list[str] = field(default_factory=list)


def check_range(start: int, end: int) -> Checked:
    """Check the entries from `start`, a multiple of CHUNK, up to `end`."""
    faults = Faults()
    with connection.cursor() as cursor:
        cursor.execute(ANY_MOMENT)
        moments = Moments(free=cursor.fetchone()[0])
    levels = [_leaves(start, end, faults, moments)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node_hash(below[at], below[at + 1]) for at in range(0, len(below) - 1, 2)])
    _check_nodes(start, end, levels, faults)
    seen, heads = _heads(start, end, levels, faults)
    return Checked(start, end, _parts(levels, end - start), heads, seen, faults, moments.notes())


def _parts(levels: Sequence[Sequence[bytes]], size: int) -> list[bytes]:
    return [levels[level][index] for level, index in frontier_nodes(size)]


def _leaves(start: int, end: int, faults: Faults, moments: Moments) -> list[bytes]:
    hashes: list[bytes] = []
    expected = start
    with connection.cursor() as cursor:
        cursor.execute(ROWS, [start, end])
        for position, stored, *entry in cursor:
            _missing(expected, position, hashes, faults)
            expected = position + 1
            hashes.append(_leaf(position, bytes(stored), entry, faults, moments))
    _missing(expected, end, hashes, faults)
    return hashes


def _missing(start: int, end: int, hashes: list[bytes], faults: Faults) -> None:
    if start < end:
        text = f"leaf {start} is missing" if end - start == 1 else f"leaves {start} to {end - 1} are missing"
        faults.add(text, places=end - start)
        hashes.extend([HOLE] * (end - start))


def _leaf(position: int, stored: bytes, entry: list[Any], faults: Faults, moments: Moments) -> bytes:
    *header, earlier, payload, nonce, payload_sha256, sha256, rows = entry
    if header[0] is None:
        faults.add(f"leaf {position}: its entry is gone")
        return stored
    facts = EntryText(*[*header, _names(earlier)])
    if payload is not None and not _payload_fits(payload, nonce, payload_sha256):
        faults.add(f"leaf {position}: the payload of entry {facts.id} was changed")
    found = _entry_hash(facts, bytes(payload_sha256))
    leaf = leaf_hash(leaf_data(found, None if rows is None else bytes(rows)))
    if found != bytes(sha256):
        faults.add(f"leaf {position}: entry {facts.id} was changed")
    if rows is not None and not moments.fits(position, facts, bytes(rows)):
        faults.add(f"leaf {position}: entry {facts.id} tells another time than its transaction had")
    if leaf != stored:
        faults.add(f"leaf {position}: it is not the leaf of entry {facts.id} with its bound rows")
    return leaf


def _entry_hash(facts: EntryText, payload_sha256: bytes) -> bytes:
    """HOLE for a header that no format has, for example moves in an entry of format 1."""
    try:
        return entry_hash_of_text(facts, payload_sha256=payload_sha256)
    except (ValueError, TypeError):
        return HOLE


# Few different lists of moves are in millions of entries.
@lru_cache(maxsize=1000)
def _names(earlier: str | None) -> Any:
    return None if earlier is None else json.loads(earlier)


def _payload_fits(payload: str, nonce: Any, payload_sha256: Any) -> bool:
    """A payload without its nonce cannot be checked, so it counts as changed."""
    return nonce is not None and payload_hash(payload=json.loads(payload), nonce=bytes(nonce)) == bytes(payload_sha256)


def _check_nodes(start: int, end: int, levels: Sequence[Sequence[bytes]], faults: Faults) -> None:
    """Every complete subtree must be stored with the hash that its leaves give: proofs are made from these nodes."""
    expected = sum(len(level) for level in levels[1:])
    with connection.cursor() as cursor:
        cursor.execute(NODES, [1, LEVELS, start, end])
        for level, index, digest in cursor:
            expected -= 1
            if bytes(digest) != levels[level][index - (start >> level)]:
                faults.add(f"node {level}/{index} is not what its leaves give")
    if expected:
        faults.add(f"{expected} nodes over the leaves {start} to {end - 1} are missing", places=expected)


def _heads(start: int, end: int, levels: Sequence[Sequence[bytes]], faults: Faults) -> tuple[int, list[SignedHead]]:
    found_rows = LedgerCheckpoint.objects.filter(size__gt=start, size__lte=end).order_by("size")
    rows = list(found_rows.only("size", "root", "text", "key"))
    keys = _public_keys()
    found = [one for row in rows if (one := _head(row, start, levels, keys, faults)) is not None]
    return len(rows), found


def _head(
    row: LedgerCheckpoint,
    start: int,
    levels: Sequence[Sequence[bytes]],
    keys: Mapping[str, tuple[str, Ed25519PublicKey]],
    faults: Faults,
) -> SignedHead | None:
    try:
        signed = checkpoint_verify(row.text, keys=[keys[row.key_id]] if row.key_id in keys else [])
    except CheckpointInvalid as error:
        faults.add(f"head of {row.size} entries: {error}")
        return None
    if (signed.size, signed.root) != (row.size, bytes(row.root)):
        faults.add(f"head of {row.size} entries: the row is not what was signed")
    return SignedHead(row.size, signed.root, epoch_of(signed), row.key_id, _parts(levels, row.size - start))


def _public_keys() -> dict[str, tuple[str, Ed25519PublicKey]]:
    return {key.id: (key.name, key_public(key)) for key in ledger_keys()}
