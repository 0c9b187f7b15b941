"""Checks the whole record: entries, tree, signed heads, epochs, triggers, erasures, and what witnesses keep. It only
reads. The check of one range of entries is in `verify_range`."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from typing import Any

from django.apps import apps
from django.db import connection

from governance.ledger.models import LedgerEntry
from governance.record.services.manifest import guards_verify
from governance.retention.services.erasure import entries_digest
from governance.sealing.adapters.base import Cosigner, Witness, WitnessFailed
from governance.sealing.models import LedgerCheckpoint, WitnessReceipt
from governance.sealing.rules.epoch import epoch_of, kept_of
from governance.sealing.rules.merkle import Checkpoint, checkpoint_verify, frontier_root, node_hash
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.rules.merkle.cosignature import cosignature_find
from governance.sealing.selectors.cosignatures import cosignature_fits
from governance.sealing.selectors.witnesses import Tree, epoch_list
from governance.sealing.services.seal import MOMENT, NO_LEAF
from governance.sealing.services.verify_keys import key_chain_verify
from governance.sealing.services.verify_range import CHUNK, LEVELS, NODES, Checked, Faults, check_range
from governance.sealing.services.witnesses import PublicKeys, head_judge
from governance.sealing.states import WitnessResult
from governance.sql.guards import append_only_tables

COUNT = "SELECT count(*) FROM governance_erasedpayload"
# A payload that is missing without an order was removed past the erasing functions.
UNORDERED = """
SELECT entry.id FROM governance_ledgerentry entry
LEFT JOIN governance_erasedpayload erased ON erased.entry_id = entry.id
WHERE (entry.payload IS NULL OR entry.nonce IS NULL) AND erased.entry_id IS NULL ORDER BY entry.id
"""
# A payload that counts as erased but is there: somebody wrote it back, or the mark is false.
STILL_THERE = """
SELECT erased.entry_id FROM governance_erasedpayload erased
JOIN governance_ledgerentry entry ON entry.id = erased.entry_id WHERE entry.payload IS NOT NULL ORDER BY 1
"""
# Which payloads an item erased, beside the digest in its ledger entry. The table alone could be extended afterwards to
# cover a further removal; the entry is sealed.
BY_ITEM = """
SELECT item.id, array_agg(erased.entry_id ORDER BY erased.entry_id), (
    SELECT entry.payload ->> 'entries_sha256' FROM governance_ledgerentry entry
    WHERE entry.subject_id = item.subject_id AND entry.action = 'erasure.done'
        AND entry.payload ->> 'item' = item.id::text)
FROM governance_erasedpayload erased JOIN governance_erasureitem item ON item.id = erased.item_id
GROUP BY item.id ORDER BY item.id
"""


@dataclass(slots=True)
class Erasures:
    """`count` payloads were erased by order; `wrong` names what contradicts the orders."""

    count: int = 0
    wrong: list[str] = field(default_factory=list)


def _erasures_verify() -> Erasures:
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
        found = Erasures(count=cursor.fetchone()[0])
        cursor.execute(UNORDERED)
        found.wrong += [f"the payload of entry {row[0]} is gone without an order" for row in cursor.fetchall()]
        cursor.execute(STILL_THERE)
        found.wrong += [f"the payload of entry {row[0]} counts as erased and is there" for row in cursor.fetchall()]
        cursor.execute(BY_ITEM)
        for item_id, entries, said in cursor.fetchall():
            if said != entries_digest(entries):
                found.wrong.append(f"erasure {item_id}: other payloads are gone than the ledger says")
    return found


@dataclass(slots=True)
class WitnessChecked:
    name: str
    heads: int = 0
    largest: int = 0
    lost: int = 0
    unsigned: int = 0
    receipts: int = 0
    cosigned: int = 0
    unreadable: str = ""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def words(self) -> str:
        if self.unreadable:
            return f"{self.name}: cannot be read ({self.unreadable})"
        said = f"{self.name}: {self.heads} heads, the largest of {self.largest} entries"
        return said + (f"; {self.lost} are of what is confirmed as lost" if self.lost else "")


def _witness_verify(*, witness: Witness, keys: PublicKeys, faults: Faults) -> WitnessChecked:
    """Compare every head of a witness with the record. A witness that cannot be read is a fault: it may keep heads that
    contradict the record."""
    checked, tree = WitnessChecked(witness.name), Tree()
    known = [*tree.keys, *keys]
    kept: set[bytes] = set()
    # Before the witness is read: a head that is pushed meanwhile has a receipt and may be missing from what was read.
    told = WitnessReceipt.objects.filter(witness=witness.name).order_by("-id").first()
    try:
        for text in witness.heads():
            try:
                head = checkpoint_verify(text, keys=known)
            except CheckpointInvalid as error:
                checked.unsigned += 1
                faults.add(f"witness {witness.name}: it holds a head that does not verify: {error}")
                continue
            _judge(checked, head, tree, faults)
            _check_cosigned(witness, text, head.size, checked, faults)
            kept.add(head.root)
    except WitnessFailed as failure:
        checked.unreadable = failure.code
        faults.add(f"witness {witness.name}: it cannot be read ({failure.code})")
        return checked
    if told is not None:
        _check_receipts(checked, told, kept, faults)
        _check_cosignatures(witness, faults)
    return checked


def _check_cosigned(witness: Witness, text: str, size: int, checked: WitnessChecked, faults: Faults) -> None:
    """A witness that cosigns says of each head that it saw it. Without that, somebody else put the head there."""
    if not isinstance(witness, Cosigner):
        return
    try:
        good = bool(cosignature_find(text, key=witness.key))
    except CheckpointInvalid:
        good = False
    checked.cosigned += good
    if not good:
        faults.add(f"witness {witness.name}: it holds a head of {size} entries that its key did not cosign")


def _check_cosignatures(witness: Witness, faults: Faults) -> None:
    """The cosignatures in our receipts, against the heads in the record."""
    if not isinstance(witness, Cosigner):
        return
    rows = WitnessReceipt.objects.filter(witness=witness.name).exclude(cosignature="").order_by("size")
    told = rows.values_list("size", "root", "cosignature").iterator(chunk_size=2000)
    while part := list(islice(told, 2000)):
        heads = LedgerCheckpoint.objects.filter(size__in=[size for size, _, _ in part])
        # By root too: at this size there may have been another head, in an epoch that was lost.
        texts = {(head.size, bytes(head.root)): head.text for head in heads.only("size", "root", "text")}
        for size, root, line in part:
            text = texts.get((size, bytes(root)))
            if text is not None and not cosignature_fits(text, line, cosigner=witness):
                faults.add(f"witness {witness.name}: the stored cosignature of {size} entries is not of its key")


def _judge(checked: WitnessChecked, head: Checkpoint, tree: Tree, faults: Faults) -> None:
    checked.heads += 1
    checked.largest = max(checked.largest, head.size)
    finding = head_judge(witness=checked.name, head=head, tree=tree)
    if finding is not None:
        faults.add(f"witness {finding.words}")
        return
    kept = kept_of(epoch_of(head), tree.begins)
    checked.lost += kept is not None and head.size > kept


def _check_receipts(checked: WitnessChecked, told: WitnessReceipt, kept: set[bytes], faults: Faults) -> None:
    """The witness must still have every head that it reported as stored. `told` is its last receipt before it was
    read."""
    rows = WitnessReceipt.objects.filter(witness=checked.name, result=WitnessResult.STORED, id__lte=told.id)
    for size, root in rows.order_by("size").values_list("size", "root").iterator(chunk_size=5000):
        checked.receipts += 1
        if bytes(root) not in kept:
            faults.add(f"witness {checked.name}: the head of {size} entries that it stored is not there any more")


UNSEALED = f"SELECT count(*) FROM governance_ledgerentry e WHERE {NO_LEAF}"  # noqa: S608
# Entries below the sealer's cursor without a leaf. The sealer leaves none, so they were inserted later with the number
# of an old transaction. With a limit, because they are named one by one.
PASSED_OVER = f"SELECT e.id FROM governance_ledgerentry e WHERE {NO_LEAF} AND (e.txid, e.id) <= (%s, %s) LIMIT 100"  # noqa: S608
# Leaves that no signed head covers: the sealer writes leaves and head in one transaction.
BEYOND = """
SELECT count(*) FROM governance_ledgerleaf
WHERE position >= (SELECT coalesce(max(size), 0) FROM governance_ledgercheckpoint)
"""
# `tgenabled = 'A'` is ENABLE ALWAYS. A trigger in any other mode can be skipped by a session in replica mode.
GUARDS = """
SELECT c.relname, count(t.oid) FILTER (WHERE t.tgenabled = 'A')
FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname IN ('append_only_rows', 'append_only_table')
WHERE c.relname = ANY(%s) AND c.relnamespace = current_schema()::regnamespace GROUP BY c.relname
"""
EPOCH_ACTIONS = ("ledger.divergence_confirmed", "ledger.epoch_begun")
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Verified:
    """The result of a check. `notes` are known and confirmed, such as a loss; they are not faults."""

    entries: int = 0
    heads: int = 0
    unsealed: int = 0
    erased: int = 0
    """Payloads, by order."""
    found: Faults = field(default_factory=Faults)
    notes: list[str] = field(default_factory=list)
    witnesses: list[WitnessChecked] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return self.found.count

    @property
    def wrong(self) -> list[str]:
        return self.found.wrong

    def as_json(self) -> dict[str, Any]:
        return {
            "valid": not self.faults,
            "entries": self.entries,
            "heads": self.heads,
            "unsealed": self.unsealed,
            "erased": self.erased,
            "faults": self.faults,
            "wrong": self.wrong,
            "notes": self.notes,
            "witnesses": [one.as_json() for one in self.witnesses],
        }


@dataclass(slots=True)
class Upper:
    """The part of the tree above the ranges, built as their results arrive."""

    stack: list[bytes] = field(default_factory=list)
    nodes: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def add(self, root: bytes, number: int) -> None:
        # Only complete subtrees: each trailing 1 bit of the number completes one more level.
        level, index = LEVELS, number
        while index & 1:
            root = node_hash(self.stack.pop(), root)
            level, index = level + 1, index >> 1
            self.nodes[level, index] = root
        self.stack.append(root)


def ledger_verify(
    *,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
    witnesses: Iterable[Witness] = (),
    keys: PublicKeys = (),
) -> Verified:
    """Check everything. `progress(done, total)` counts entries. `keys` are known in addition to those in the database,
    for heads of witnesses."""
    verified, upper, chain = Verified(), Upper(), key_chain_verify()
    # The size is read once: what is sealed during the check is left for the next one.
    newest = LedgerCheckpoint.objects.order_by("-size").first()
    total = newest.size if newest else 0
    epoch = 0
    for part in _parts(total, processes):
        verified.found.merge(part.faults)
        verified.notes += part.notes
        epoch = _check_heads(part, upper, epoch, verified)
        chain.follow(part.heads, verified.found)
        if part.end - part.start == CHUNK:
            upper.add(part.frontier[0], part.start // CHUNK)
        verified.entries = part.end
        progress(part.end, total)
    _check_upper(upper, total, verified.found)
    _check_rest(newest, verified)
    chain.end(verified.found)
    verified.notes += chain.notes
    _check_epochs(verified)
    _check_guards(verified.found)
    _check_erasures(verified)
    for witness in witnesses:
        verified.witnesses.append(_witness_verify(witness=witness, keys=keys, faults=verified.found))
    return verified


def _parts(total: int, processes: int) -> Iterator[Checked]:
    starts = range(0, total, CHUNK)
    ends = [min(start + CHUNK, total) for start in starts]
    if processes < 2 or total <= CHUNK:
        yield from map(check_range, starts, ends)
        return
    # Before the fork: children that share the parent's connection would read each other's answers. Fork and not spawn,
    # so that the children need not load Django again. `freeze`: nor does the garbage collector look at it again.
    connection.close()
    with ProcessPoolExecutor(processes, mp_context=get_context("fork"), initializer=gc.freeze) as pool:
        yield from pool.map(check_range, starts, ends)


def _check_heads(part: Checked, upper: Upper, epoch: int, verified: Verified) -> int:
    """Check the heads of one range; returns the newest epoch so far. Ranges must come in order."""
    verified.heads += part.seen
    for head in part.heads:
        if frontier_root([*upper.stack, *head.parts]) != head.root:
            text = f"head of {head.size} entries: the entries give another root than the one that was signed"
            verified.found.add(text)
        if head.epoch < epoch:
            verified.found.add(f"head of {head.size} entries: it is of an epoch that was over")
        epoch = max(epoch, head.epoch)
    return epoch


def _check_upper(upper: Upper, total: int, faults: Faults) -> None:
    missing = dict(upper.nodes)
    with connection.cursor() as cursor:
        cursor.execute(NODES, [LEVELS + 1, max(LEVELS + 1, total.bit_length()), 0, total])
        for level, index, digest in cursor:
            if missing.pop((level, index), b"") != bytes(digest):
                faults.add(f"node {level}/{index} is not what its leaves give")
    for level, index in missing:
        faults.add(f"node {level}/{index} is missing")


def _check_rest(newest: LedgerCheckpoint | None, verified: Verified) -> None:
    """What the newest head does not cover: entries that wait, entries that the sealer passed, unsigned leaves."""
    with connection.cursor() as cursor:
        cursor.execute(UNSEALED)
        (verified.unsealed,) = cursor.fetchone()
        cursor.execute(BEYOND)
        (beyond,) = cursor.fetchone()
        if beyond:
            verified.found.add(f"{beyond} leaves are beyond the newest head", places=beyond)
        cursor.execute(MOMENT)
        cluster, _ = cursor.fetchone()
        # In another cluster (after a restored dump) transactions are counted anew, and the cursor says nothing.
        if newest is not None and newest.cluster == cluster:
            cursor.execute(PASSED_OVER, [newest.cursor_txid, newest.cursor_id])
            for (entry,) in cursor.fetchall():
                verified.found.add(f"entry {entry} was put in where the sealer had been")


def _check_epochs(verified: Verified) -> None:
    """Each epoch must be in the ledger too. A confirmed loss is always reported as a note."""
    # Without this, somebody could insert an epoch to present a removal as a confirmed loss.
    for row in epoch_list():
        entries = LedgerEntry.objects.filter(action__in=EPOCH_ACTIONS, at=row.begun_at)
        told = [entry.payload for entry in entries if entry.payload is not None]
        facts = {"epoch": row.number, "kept": row.kept, "lost_to": row.lost_to}
        if not any(facts.items() <= payload.items() for payload in told):
            verified.found.add(f"epoch {row.number} is not in the ledger as it stands in its table")
        if row.lost_to > row.kept:
            lost = f"entries {row.kept} to {row.lost_to - 1} that were signed before epoch {row.number} are lost"
            verified.notes.append(f"{lost}, confirmed at {row.begun_at:%Y-%m-%d %H:%M:%S} UTC ({row.reason_code})")


def _check_guards(faults: Faults) -> None:
    """The database protects the record as the adopted manifest says."""
    differences = guards_verify()
    if differences is not None:
        for text in differences:
            faults.add(text)
        return
    # A database from before the manifest: the triggers that refuse changes exist and fire in every mode.
    tables: Sequence[str] = append_only_tables(list(apps.get_models()))
    with connection.cursor() as cursor:
        cursor.execute(GUARDS, [list(tables)])
        for table, active in cursor.fetchall():
            if active != 2:
                faults.add(f"table {table}: its triggers against changes are not both in force")


def _check_erasures(verified: Verified) -> None:
    erasures = _erasures_verify()
    verified.erased = erasures.count
    for text in erasures.wrong:
        verified.found.add(text)
