"""Witnesses: sends them signed heads and records their answers; compares their newest heads with the record, and
engages deny mode if the record does not continue one of them. A witness that does not answer delays nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from zlib import crc32

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import connection, transaction

from governance.enforcement.sql import send_lock_exclude
from governance.ledger.services import ledger_append
from governance.sealing.adapters.base import Cosigner, Witness, WitnessFailed
from governance.sealing.models import LedgerCheckpoint, WitnessReceipt
from governance.sealing.rules.epoch import confirmed_loss, epoch_of, kept_of
from governance.sealing.rules.merkle import Checkpoint, checkpoint_verify, consistency_proof
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid, checkpoint_read
from governance.sealing.selectors.keys import handovers_to
from governance.sealing.selectors.tree import nodes_read
from governance.sealing.selectors.witnesses import Tree, heads_due, ledger_denial, paused_until, stored_size
from governance.sealing.states import LEDGER_INCONSISTENT, WitnessResult
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdown_preview
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.actors import SYSTEM

# The first key of the advisory lock: any number that no other lock uses.
LOCK = 0x7769746E
# Heads per witness and run; the next scheduled task sends the rest.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Pushed:
    stored: int = 0
    failed: str = ""


def witness_push(*, at: datetime, witness: Witness, batch: int = BATCH) -> Pushed:
    """Send one batch, oldest first, and stop at the first failure."""
    with _alone(witness) as alone:
        pause = paused_until(witness=witness.name) if alone else None
        if not alone or (pause is not None and pause > at):
            return Pushed()
        stored, since = 0, stored_size(witness=witness.name)
        for head in heads_due(witness=witness.name, limit=batch):
            try:
                cosignature = _sent(witness, head, since)
            except WitnessFailed as failure:
                result = WitnessResult.REFUSED if failure.refused else WitnessResult.FAILED
                _record(witness, head, result, at, detail=failure.code)
                return Pushed(stored, failure.code)
            # After the answer: if the process dies in between, the head is sent again, which changes nothing.
            _record(witness, head, WitnessResult.STORED, at, cosignature=cosignature)
            stored += 1
        return Pushed(stored)


def _sent(witness: Witness, head: LedgerCheckpoint, since: int) -> str:
    """Returns the cosignature, if the witness is one that cosigns."""
    if not isinstance(witness, Cosigner):
        witness.push(head.text, size=head.size, epoch=epoch_of(checkpoint_read(head.text)[0]))
        return ""
    return witness.cosign(
        head.text,
        size=head.size,
        since=since,
        prove=lambda old: consistency_proof(old=old, new=head.size, read=nodes_read),
        handovers=lambda: [one.line for one in reversed(handovers_to(key_id=head.key_id, size=head.size))],
    )


def _record(
    witness: Witness,
    head: LedgerCheckpoint,
    result: WitnessResult,
    at: datetime,
    *,
    detail: str = "",
    cosignature: str = "",
) -> None:
    row = WitnessReceipt(
        witness=witness.name,
        size=head.size,
        root=head.root,
        result=result,
        detail=detail,
        cosignature=cosignature,
        at=at,
    )
    # A head that was sent twice may already have its receipt `stored`, which is unique.
    WitnessReceipt.objects.bulk_create([row], ignore_conflicts=True)


@contextmanager
def _alone(witness: Witness) -> Iterator[bool]:
    """One sender per witness at a time; False for the others, which do not wait."""
    # A lock of the session: no transaction is open while the witness answers, which can take seconds. The mask, because
    # PostgreSQL's keys are signed 32-bit numbers.
    key = [LOCK, crc32(witness.name.encode()) & 0x7FFFFFFF]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


log = structlog.get_logger("holdpoint.ledger")
# Divergent heads that the shutdown and its ledger entry name: enough to investigate, and the row stays small.
NAMED = 20
PublicKeys = Sequence[tuple[str, Ed25519PublicKey]]


@dataclass(frozen=True, slots=True)
class DivergentHead:
    """A signed head that a witness keeps and that the record does not continue."""

    witness: str
    kind: str
    epoch: int
    size: int
    root: str
    our_epoch: int
    our_size: int
    our_root: str

    @property
    def words(self) -> str:
        kept = f"{self.witness} holds a signed head of {self.size} entries (epoch {self.epoch})"
        match self.kind:
            case "shorter":
                return f"{kept}; the record has {self.our_size}."
            case "inconsistent":
                return f"{kept} with another root than the record has at that size."
            case "newer_epoch":
                return f"{kept}; the record is in epoch {self.our_epoch}."
            case _:
                return f"{kept}; a loss of that size was not confirmed."

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": self.words}


def head_judge(*, witness: str, head: Checkpoint, tree: Tree) -> DivergentHead | None:
    """None if the record continues the head, or if a person has confirmed the loss. Otherwise how they differ."""
    # A second look, with the tree read again: another process may have just sealed and sent a head that is longer than
    # the tree read before. Without it, that would engage deny mode.
    if _judged(witness, head, tree) is None:
        return None
    tree.refresh()
    return _judged(witness, head, tree)


def _judged(witness: str, head: Checkpoint, tree: Tree) -> DivergentHead | None:
    epoch = epoch_of(head)
    kept = kept_of(epoch, tree.begins)
    ours: bytes | None = None
    if epoch > tree.epoch or epoch < 1:
        kind = "newer_epoch"
    elif kept is not None and head.size > kept:
        if head.size <= confirmed_loss(epoch, tree.begins):
            return None
        kind = "unconfirmed_loss"
    elif head.size > tree.size:
        kind = "shorter"
    else:
        ours = tree.root_at(head.size)
        if ours == head.root:
            return None
        kind = "inconsistent"
    return DivergentHead(
        witness=witness,
        kind=kind,
        epoch=epoch,
        size=head.size,
        root=head.root.hex(),
        our_epoch=tree.epoch,
        our_size=tree.size,
        our_root=(ours or tree.root).hex(),
    )


def _divergence_find(*, witnesses: Iterable[Witness], keys: PublicKeys) -> list[DivergentHead]:
    """Compare the record with the newest head of each witness. A witness that does not answer, or has only unsigned
    heads, is ignored."""
    # Otherwise anybody who can disturb a witness, or write to it, could stop the system.
    tree = Tree()
    known = [*tree.keys, *keys]
    found: list[DivergentHead] = []
    for witness in witnesses:
        head = _newest(witness, known)
        finding = head_judge(witness=witness.name, head=head, tree=tree) if head else None
        found += [finding] if finding else []
    return sorted(found, key=lambda one: (one.epoch, one.size), reverse=True)


def _newest(witness: Witness, keys: PublicKeys) -> Checkpoint | None:
    """The largest head of the newest epoch that a known key signed."""
    try:
        texts = witness.newest()
    except WitnessFailed as failure:
        log.warning("witness_unreadable", witness=witness.name, code=failure.code)
        return None
    heads = []
    for text in texts:
        try:
            head = checkpoint_read(text)[0]
        except CheckpointInvalid:
            continue
        heads.append(((epoch_of(head), head.size), text))
    for _, text in sorted(heads, reverse=True):
        try:
            return checkpoint_verify(text, keys=keys)
        except CheckpointInvalid:
            log.error("witness_head_unsigned", witness=witness.name)
    return None


def divergence_guard(*, at: datetime, witnesses: Iterable[Witness], keys: PublicKeys) -> Shutdown | None:
    """Engage deny mode if a witness contradicts the record. Returns the shutdown while it is engaged. Several processes
    may call it at once."""
    standing = ledger_denial()
    if standing is not None:
        return standing
    findings = _divergence_find(witnesses=witnesses, keys=keys)
    return _deny(findings, at) if findings else None


def _deny(findings: Sequence[DivergentHead], at: datetime) -> Shutdown:
    with transaction.atomic():
        # Exclusively, like every shutdown: no intent commits after it. And two processes engage it once: the second one
        # waits here, and then finds it.
        send_lock_exclude()
        standing = ledger_denial()
        if standing is not None:
            return standing
        preview = shutdown_preview(scope=ShutdownScope.GLOBAL, organization_id=None, target="")
        shutdown = Shutdown(
            scope=ShutdownScope.GLOBAL,
            target=LEDGER_INCONSISTENT,
            reason_code=LEDGER_INCONSISTENT,
            preview=preview | {"findings": [one.as_json() for one in findings[:NAMED]]},
            engaged_by_kind=SYSTEM.kind.value,
            engaged_by_ref="",
            engaged_at=at,
        )
        shutdown.save(force_insert=True)
        for action, payload in (
            ("ledger.divergence_found", {"findings": [asdict(one) for one in findings[:NAMED]]}),
            ("shutdown.engaged", {"scope": shutdown.scope, "target": shutdown.target, "drill": False}),
        ):
            ledger_append(
                action=action,
                organization_id=None,
                subject_type="shutdown",
                subject_id=shutdown.id,
                actor=SYSTEM,
                at=at,
                payload=payload,
                reason_code=LEDGER_INCONSISTENT,
            )
    log.error("ledger_inconsistent", shutdown_id=str(shutdown.id), findings=len(findings))
    return shutdown
