"""Reads the sealed tree: heads, proofs, sealed entries in order, and how far sealing is behind."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.moves import Move, moves_of
from governance.record.selectors.rows import bound_rows_of
from governance.sealing.errors import NotSealedYet
from governance.sealing.models import LedgerCheckpoint, LedgerLeaf
from governance.sealing.rules.merkle import consistency_proof, inclusion_proof
from governance.sealing.rules.merkle.tree import Node
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound

LEAF_HASHES = "SELECT position, hash FROM governance_ledgerleaf WHERE position = ANY(%s)"
# All wanted nodes in one round trip: a proof needs one per level.
NODE_HASHES = """
SELECT level, index, hash FROM governance_ledgernode
WHERE (level, index) IN (SELECT * FROM unnest(%s::smallint[], %s::bigint[]))
"""
# The oldest entry above the sealer's cursor, by the index (txid, id). The aggregates give a row also without any head.
UNSEALED = """
SELECT at FROM governance_ledgerentry e WHERE (e.txid, e.id) > (
    SELECT coalesce(max(cursor_txid), 0), coalesce(max(cursor_id::text)::uuid, %s) FROM (
        SELECT cursor_txid, cursor_id FROM governance_ledgercheckpoint ORDER BY size DESC LIMIT 1) head)
ORDER BY e.txid, e.id LIMIT 1
"""

# By position, which has no gaps and does not change: a reader that remembers the last one misses nothing.
SEALED = """
SELECT l.position, e.id, e.organization_id, e.action, e.subject_id, e.reason_code, e.at, e.payload::text,
    e.earlier::text
FROM governance_ledgerleaf l JOIN governance_ledgerentry e ON e.id = l.entry_id
WHERE l.position >= %s AND l.position < %s AND (e.action = ANY(%s) OR e.earlier ?| %s)
ORDER BY l.position
"""

# A transaction that has written has locked its own transaction id. `pg_locks` shows that to every role, for all
# databases of the server; `pg_stat_activity` hides the times of other roles' sessions, hence the LEFT JOIN.
WRITERS = """
SELECT l.pid, extract(epoch FROM clock_timestamp() - a.xact_start)::bigint, coalesce(a.datname, '?') FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
ORDER BY age(l.transactionid) DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    entry: LedgerEntry
    position: int
    leaf_hash: bytes
    rows_sha256: bytes | None
    proof: list[bytes]
    checkpoint: LedgerCheckpoint


def checkpoint_list() -> QuerySet[LedgerCheckpoint]:
    return LedgerCheckpoint.objects.order_by("-size")


def checkpoint_get(*, size: int) -> LedgerCheckpoint:
    found = LedgerCheckpoint.objects.filter(size=size).first()
    if found is None:
        raise NotFound
    return found


def checkpoint_latest() -> LedgerCheckpoint | None:
    return checkpoint_list().first()


def entry_proof(*, entry_id: UUID, size: int | None = None) -> InclusionProof:
    """Proof that the entry is in the head of this size (default: the newest)."""
    # By the tenant scope: an entry of another organization is a 404, as if it did not exist.
    entry = tenant_get(LedgerEntry, entry_id)
    leaf = LedgerLeaf.objects.filter(entry_id=entry.id).first()
    checkpoint = checkpoint_latest() if size is None else checkpoint_get(size=size)
    if leaf is None or checkpoint is None or leaf.position >= checkpoint.size:
        raise NotSealedYet
    proof = inclusion_proof(index=leaf.position, size=checkpoint.size, read=nodes_read)
    rows = bound_rows_of(entry_ids=[entry.id]).get(entry.id)
    digest = None if rows is None else sha256(rows).digest()
    return InclusionProof(entry, leaf.position, bytes(leaf.hash), digest, proof, checkpoint)


def consistency(*, old: int, new: int) -> tuple[LedgerCheckpoint, LedgerCheckpoint, list[bytes]]:
    """Two signed heads, and the proof that the newer one continues the older one."""
    if not 0 < old <= new:
        raise InvalidInput(errors=[FieldError("/from", "must be positive and not larger than `to`")])
    heads = checkpoint_get(size=old), checkpoint_get(size=new)
    return *heads, consistency_proof(old=old, new=new, read=nodes_read)


def nodes_read(nodes: Sequence[Node]) -> list[bytes]:
    """The hashes of these nodes, in this order. Leaves and inner nodes are in two tables. KeyError if one is
    missing."""
    found: dict[Node, bytes] = {}
    with connection.cursor() as cursor:
        leaves = [index for level, index in nodes if level == 0]
        if leaves:
            cursor.execute(LEAF_HASHES, [leaves])
            found |= {(0, position): bytes(digest) for position, digest in cursor.fetchall()}
        inner = [node for node in nodes if node[0]]
        if inner:
            cursor.execute(NODE_HASHES, [list(column) for column in zip(*inner, strict=True)])
            found |= {(level, index): bytes(digest) for level, index, digest in cursor.fetchall()}
    return [found[node] for node in nodes]


@dataclass(frozen=True, slots=True)
class SealedMove:
    """The fields of a move that readers of the sealed record need. Positions of entries have no gaps, and no entry is
    added below the last one. `number` counts the entry's moves; `last`: it is the deciding one."""

    position: int
    entry_id: UUID
    organization_id: UUID | None
    subject_id: UUID
    at: datetime
    move: Move
    number: int
    last: bool


def sealed_moves(*, first: int, before: int, actions: Collection[str]) -> list[SealedMove]:
    """Moves of sealed entries of all organizations, by position and in their order."""
    with connection.cursor() as cursor:
        cursor.execute(SEALED, [first, before, list(actions), list(actions)])
        rows = cursor.fetchall()
    return [one for row in rows for one in _sealed_moves(*row) if one.move.action in actions]


def _sealed_moves(
    position: int,
    entry_id: UUID,
    organization_id: UUID | None,
    action: str,
    subject_id: UUID,
    reason_code: str,
    at: datetime,
    payload: str | None,
    earlier: str | None,
) -> list[SealedMove]:
    moves = moves_of(
        action=action,
        reason_code=reason_code,
        earlier=json.loads(earlier) if earlier else None,
        payload=json.loads(payload) if payload else None,
    )
    return [
        SealedMove(position, entry_id, organization_id, subject_id, at, move, number, number == len(moves))
        for number, move in enumerate(moves, start=1)
    ]


def sealer_lag(*, at: datetime) -> float:
    """Seconds since the oldest unsealed entry was written; 0 if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED, [UUID(int=0)])
        oldest = cursor.fetchone()
    return 0.0 if oldest is None else max(0.0, (at - oldest[0]).total_seconds())


def oldest_writer() -> str:
    """The oldest transaction that has written, in words, or an empty text. No entry of a later one can be sealed until
    it ends."""
    with connection.cursor() as cursor:
        cursor.execute(WRITERS)
        found = cursor.fetchone()
    if found is None:
        return ""
    age = f"{found[1]} s old" if found[1] is not None else "of another role"
    return f"; the oldest transaction that writes is {age} (process {found[0]}, database {found[2]})"
