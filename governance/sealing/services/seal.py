"""Sealing: entries of finished transactions get the next positions in the tree, and the new head is signed.

Appending an entry takes no lock for it. An advisory lock allows one sealer at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from governance.ledger.services import ledger_append
from governance.record.rules.items import leaf_data
from governance.sealing.models import LedgerCheckpoint, LedgerKey
from governance.sealing.rules.epoch import epoch_lines
from governance.sealing.rules.merkle import Checkpoint, consistency_proof, extend, frontier_root, leaf_hash
from governance.sealing.rules.merkle.checkpoint import checkpoint_signed, public_bytes
from governance.sealing.rules.signing import SealingKey, SealingStopped
from governance.sealing.selectors.keys import handover_pending, key_subject
from governance.sealing.selectors.tree import nodes_read
from governance.sealing.selectors.witnesses import epoch_current
from reasoncodes.base.actors import SYSTEM

# Any number that no other advisory lock uses. `epoch_begin` takes the same one.
LOCK = 0x7365616C
# Entries per head and transaction. It bounds memory, and how long the sealer's own transaction writes.
BATCH = 5000
HASH = 32
NOBODY = UUID(int=0)
LAST = UUID(int=2**128 - 1)
# The database cluster, and the oldest transaction that is still running.
MOMENT = "SELECT system_identifier, pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM pg_control_system()"
# The rows that are bound to an entry, all parts in order; NULL if there are none. Committed with the entry, so a final
# entry has them all.
BOUND_ROWS = (
    "(SELECT string_agg(b.rows, ''::bytea ORDER BY b.part) FROM governance_boundrows b WHERE b.entry_id = e.id)"
)
NO_LEAF = "NOT EXISTS (SELECT 1 FROM governance_ledgerleaf l WHERE l.entry_id = e.id)"
# Every transaction below xmin is finished: no entry can appear there later. A cursor over ids alone would skip entries
# that commit late. NO_LEAF, because after a restore some entries above the cursor are sealed already.
FINAL = f"""
SELECT e.id, e.sha256, e.txid, {BOUND_ROWS} FROM governance_ledgerentry e
WHERE e.txid < %(xmin)s AND (e.txid, e.id) > (%(txid)s, %(id)s) AND {NO_LEAF}
ORDER BY e.txid, e.id LIMIT %(limit)s
"""  # noqa: S608
# Another cluster (a restored dump) counts transactions anew: the cursor means nothing there, and only the missing leaf
# tells that an entry is not sealed.
WITHOUT_LEAF = (
    f"SELECT e.id, e.sha256, e.txid, {BOUND_ROWS} FROM governance_ledgerentry e WHERE {NO_LEAF} ORDER BY e.id"  # noqa: S608
)
# `unnest`: three parameters, however many rows there are.
LEAVES = """
INSERT INTO governance_ledgerleaf (position, entry_id, hash)
SELECT * FROM unnest(%s::bigint[], %s::uuid[], %s::bytea[])
"""
NODES = """
INSERT INTO governance_ledgernode (level, index, hash)
SELECT * FROM unnest(%s::smallint[], %s::bigint[], %s::bytea[])
"""


class KeyNotNamed(SealingStopped):
    """The key is neither the one that signed the newest head nor the one that it was handed over to."""

    def __init__(self) -> None:
        super().__init__("key_not_named")


@dataclass(frozen=True, slots=True)
class TreeHead:
    """The tree as the newest head left it: where the next sealing continues."""

    size: int = 0
    frontier: tuple[bytes, ...] = ()
    txid: int = 0
    entry: UUID = NOBODY
    cluster: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    cluster: int
    xmin: int


@dataclass(frozen=True, slots=True)
class Final:
    """An entry whose position is final: no late commit can come before it."""

    id: UUID
    sha256: bytes
    txid: int
    rows: bytes | None


def ledger_seal(*, at: datetime, key: SealingKey) -> LedgerCheckpoint | None:
    """Seal one batch. None if there is nothing to seal or another sealer is running."""
    with transaction.atomic():
        if not _alone():
            return None
        # The moment before the entries: transactions below its xmin are finished, so the next statement, whose snapshot
        # is newer, sees everything that they committed.
        head, moment = _tree_head_read(), _moment()
        entries = _entries(head, moment)
        if not entries:
            return None
        if head.key != key.id:
            if head.key and not handover_pending(old=head.key, new=key.id):
                raise KeyNotNamed
            _adopt(key, replaces=head.key, at=at)
        return _write(head, moment, entries, key, at)


def ledger_seal_all(*, at: datetime, key: SealingKey, most: int = 100) -> int:
    """Seal batch after batch while they are full. Returns how many entries were sealed."""
    # After a batch that was not full it stops, although entries may have come meanwhile: they wait for the next
    # scheduled task. Otherwise a busy record would get a signed head for every few entries.
    first = last = _tree_head_read().size
    for _ in range(most):
        sealed = ledger_seal(at=at, key=key)
        if sealed is None:
            break
        last, before = sealed.size, last
        if last - before < BATCH:
            break
    return last - first


def _tree_head_read() -> TreeHead:
    row = LedgerCheckpoint.objects.order_by("-size").first()
    if row is None:
        return TreeHead()
    raw = bytes(row.frontier)
    parts = tuple(raw[start : start + HASH] for start in range(0, len(raw), HASH))
    return TreeHead(row.size, parts, row.cursor_txid, row.cursor_id, row.cluster, row.key_id)


def _alone() -> bool:
    # Two sealers would give the same positions to different entries. It is only tried: a second one has nothing to do.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _moment() -> Moment:
    with connection.cursor() as cursor:
        cursor.execute(MOMENT)
        return Moment(*cursor.fetchone())


def _entries(head: TreeHead, moment: Moment) -> list[Final]:
    with connection.cursor() as cursor:
        if head.size and moment.cluster != head.cluster:
            cursor.execute(WITHOUT_LEAF)
        else:
            cursor.execute(FINAL, {"xmin": moment.xmin, "txid": head.txid, "id": head.entry, "limit": BATCH})
        return [
            Final(row[0], bytes(row[1]), row[2], None if row[3] is None else bytes(row[3])) for row in cursor.fetchall()
        ]


def _write(head: TreeHead, moment: Moment, entries: Sequence[Final], key: SealingKey, at: datetime) -> LedgerCheckpoint:
    leaves = [leaf_hash(leaf_data(entry.sha256, entry.rows)) for entry in entries]
    nodes, frontier = extend(size=head.size, frontier=head.frontier, leaves=leaves)
    inner = [(level, index, digest) for (level, index), digest in nodes if level]
    size = head.size + len(entries)
    with connection.cursor() as cursor:
        positions = list(range(head.size, size))
        cursor.execute(LEAVES, [positions, [entry.id for entry in entries], leaves])
        if inner:
            cursor.execute(NODES, [list(column) for column in zip(*inner, strict=True)])
    # In a new cluster everything below xmin was sealed just now, whatever its number: the cursor goes to its end.
    moved = bool(head.size) and moment.cluster != head.cluster
    root = frontier_root(frontier)
    body = Checkpoint(key.name, size, root, epoch_lines(epoch_current()))
    checkpoint = LedgerCheckpoint(
        size=size,
        root=root,
        text=_signed(body, key),
        key_id=key.id,
        frontier=b"".join(frontier),
        cursor_txid=moment.xmin - 1 if moved else entries[-1].txid,
        cursor_id=LAST if moved else entries[-1].id,
        cluster=moment.cluster,
        at=at,
    )
    checkpoint.save(force_insert=True)
    return checkpoint


def _signed(body: Checkpoint, key: SealingKey) -> str:
    # After the new nodes are inserted: a signer outside may ask for the proof that this head continues its last one.
    # If the signer is away, it raises, and nothing of this batch is stored.
    signature = key.sign_head(
        body.body.encode(), prove=lambda old: consistency_proof(old=old, new=body.size, read=nodes_read)
    )
    return checkpoint_signed(body, name=key.name, key=key.public, signature=signature)


def _adopt(key: SealingKey, *, replaces: str, at: datetime) -> None:
    """Record that another key signs from now on, also if it was used before."""
    # The entry belongs to this transaction, which is still running: the next sealing gives it its position.
    public = public_bytes(key.public)
    if not LedgerKey.objects.filter(id=key.id).exists():
        LedgerKey(id=key.id, name=key.name, public_key=public, first_used_at=at).save(force_insert=True)
    payload: dict[str, Any] = {"key": key.id, "verifier_key": key.verifier, "replaces": replaces}
    ledger_append(
        action="ledger.key_adopted",
        organization_id=None,
        subject_type="ledger_key",
        subject_id=key_subject(key_id=key.id),
        actor=SYSTEM,
        at=at,
        payload=payload,
    )
