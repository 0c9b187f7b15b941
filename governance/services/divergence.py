"""The record against its witnesses: a head that does not fit puts the system into deny mode until a person confirms.

Deny mode is a global shutdown that the program engages itself: it stops intake and every dispatch from the next request
on, in every process. Nothing releases it but `divergence_confirm`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import transaction

from governance.gate import gate_shut
from governance.ledger.append import ledger_append
from governance.ledger.epoch import confirmed_loss, epoch_of, kept_of
from governance.merkle import Checkpoint, checkpoint_verify
from governance.merkle.checkpoint import CheckpointInvalid, checkpoint_read
from governance.models import Shutdown
from governance.selectors import shutdown_preview
from governance.selectors.epoch import ledger_denial
from governance.selectors.witness import Tree
from governance.states import LEDGER_INCONSISTENT, ShutdownScope
from governance.witnesses import Witness, WitnessFailed
from reasoncodes.actors import SYSTEM

log = structlog.get_logger("holdpoint.ledger")
NAMED = 20
PublicKeys = Sequence[tuple[str, Ed25519PublicKey]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A signed head that a witness holds and the record does not continue."""

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
        held = f"{self.witness} holds a signed head of {self.size} entries (epoch {self.epoch})"
        match self.kind:
            case "shorter":
                return f"{held}; the record has {self.our_size}."
            case "inconsistent":
                return f"{held} with another root than the record has at that size."
            case "newer_epoch":
                return f"{held}; the record is in epoch {self.our_epoch}."
            case _:
                return f"{held}; a loss of that size was not confirmed."

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"words": self.words}


def head_judge(*, witness: str, head: Checkpoint, tree: Tree) -> Finding | None:
    """None when the record continues the head, or when a person has confirmed that it does not. Judged twice: a head
    that another process has just sealed and pushed is longer than what was read before."""
    if _judged(witness, head, tree) is None:
        return None
    tree.refresh()
    return _judged(witness, head, tree)


def _judged(witness: str, head: Checkpoint, tree: Tree) -> Finding | None:
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
    return Finding(
        witness=witness,
        kind=kind,
        epoch=epoch,
        size=head.size,
        root=head.root.hex(),
        our_epoch=tree.epoch,
        our_size=tree.size,
        our_root=(ours or tree.root).hex(),
    )


def divergence_find(*, witnesses: Iterable[Witness], keys: PublicKeys) -> list[Finding]:
    """Against the newest head of each witness only. One that is away, or gives what nobody signed, finds nothing."""
    tree = Tree()
    known = [*tree.keys, *keys]
    found: list[Finding] = []
    for witness in witnesses:
        head = _newest(witness, known)
        finding = head_judge(witness=witness.name, head=head, tree=tree) if head else None
        found += [finding] if finding else []
    return sorted(found, key=lambda one: (one.epoch, one.size), reverse=True)


def _newest(witness: Witness, keys: PublicKeys) -> Checkpoint | None:
    """The largest of the newest epoch that a known key signed."""
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
    """Engages deny mode when a witness says so; the shutdown while it is engaged. Safe to be called by several."""
    standing = ledger_denial()
    if standing is not None:
        return standing
    findings = divergence_find(witnesses=witnesses, keys=keys)
    return _deny(findings, at) if findings else None


def _deny(findings: Sequence[Finding], at: datetime) -> Shutdown:
    with transaction.atomic():
        gate_shut()
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
