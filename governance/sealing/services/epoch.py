"""Begins a new epoch, which makes all earlier leases void. After a divergence it also records what was lost, and ends
deny mode."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction

from governance.boundary.services import note_create
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.services import actor_reference, ledger_append
from governance.sealing.adapters.base import Witness, WitnessFailed
from governance.sealing.models import LedgerEpoch
from governance.sealing.rules.merkle import Checkpoint, checkpoint_verify
from governance.sealing.rules.merkle.checkpoint import CheckpointInvalid
from governance.sealing.selectors.witnesses import Tree, ledger_denial
from governance.sealing.services.seal import LOCK as SEALER
from governance.sealing.services.witnesses import PublicKeys, head_judge
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.models import Shutdown
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import ScopeMissing
from reasoncodes.base.ids import uuid7
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

log = structlog.get_logger("holdpoint.ledger")


@dataclass(frozen=True, slots=True)
class Loss:
    """What all witnesses together say. The record agrees with their heads up to size `kept` (None: all of it); their
    divergent heads go up to `lost_to`."""

    kept: int | None
    lost_to: int
    epoch: int
    heads: int


def epoch_begin(
    *,
    actor: Actor,
    at: datetime,
    reason_code: str,
    note: str = "",
    witnesses: Iterable[Witness] = (),
    keys: PublicKeys = (),
    installation: bool = False,
) -> LedgerEpoch:
    """Begin an epoch, and release deny mode if it is engaged. `installation`: the entry point has checked that the
    actor administers the installation."""
    if not installation:
        raise ScopeMissing("Only an administrator of the installation begins an epoch.")
    # Before the transaction: witnesses can take seconds to answer, and the send lock below stops all sending.
    loss = _loss_measure(witnesses=witnesses, keys=keys)
    with transaction.atomic():
        # The sealer's own lock: no head of the old epoch may be signed once this epoch has measured the tree.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALER])
        # As engaging deny mode does: the two change the same shutdown, and must not run at the same time.
        send_lock_exclude()
        denial = ledger_denial()
        reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
        epoch = _epoch(loss, denial, actor, reason_code, at)
        stored = note_create(organization_id=None, text=note)
        payload = {
            "epoch": epoch.number,
            "kept": epoch.kept,
            "lost_to": epoch.lost_to,
            "witnessed_heads": loss.heads,
            "note_sha256": stored.sha256 if stored else None,
        }
        if denial is not None:
            _release(denial, actor, stored, at)
            _record("ledger.divergence_confirmed", denial.id, actor, payload, reason_code, at)
            words = {"scope": denial.scope, "target": denial.target, "drill": False}
            _record("shutdown.released", denial.id, actor, words, LEDGER_INCONSISTENT, at)
        else:
            _record("ledger.epoch_begun", uuid7(), actor, payload, reason_code, at)
    return epoch


def _loss_measure(*, witnesses: Iterable[Witness], keys: PublicKeys) -> Loss:
    """Read every head of every witness that can be read, and find where record and witnesses part."""
    tree = Tree()
    known = [*tree.keys, *keys]
    # An array of numbers: a witness may keep millions of heads.
    fitting, strange, largest, epoch, count = array("q"), tree.size + 1, 0, tree.epoch, 0
    for witness in witnesses:
        for head in _heads(witness, known):
            count += 1
            finding = head_judge(witness=witness.name, head=head, tree=tree)
            if finding is not None:
                largest, epoch = max(largest, head.size), max(epoch, finding.epoch)
            if head.size <= tree.size and tree.root_at(head.size) == head.root:
                fitting.append(head.size)
            elif head.size <= tree.size and finding is not None:
                strange = min(strange, head.size)
    kept = None if strange > tree.size else max((size for size in fitting if size < strange), default=0)
    return Loss(kept=kept, lost_to=largest, epoch=epoch, heads=count)


def _heads(witness: Witness, keys: PublicKeys) -> Iterable[Checkpoint]:
    try:
        for text in witness.heads():
            try:
                yield checkpoint_verify(text, keys=keys)
            except CheckpointInvalid:
                continue
    except WitnessFailed as failure:
        log.warning("witness_unreadable", witness=witness.name, code=failure.code)


def _epoch(loss: Loss, denial: Shutdown | None, actor: Actor, reason_code: str, at: datetime) -> LedgerEpoch:
    # What deny mode was engaged for counts too: the witness that reported it may not answer now.
    findings = denial.preview.get("findings", []) if denial else []
    # Read again: now, under the sealer's lock, the tree no longer grows.
    tree = Tree()
    epoch = LedgerEpoch(
        number=max([loss.epoch, tree.epoch, *(one["epoch"] for one in findings)]) + 1,
        kept=tree.size if loss.kept is None else loss.kept,
        lost_to=max([loss.lost_to, tree.size, *(one["size"] for one in findings)]),
        reason_code=reason_code,
        actor_ref=actor_reference(actor),
        begun_at=at,
    )
    epoch.save(force_insert=True)
    return epoch


def _release(denial: Shutdown, actor: Actor, note: Any, at: datetime) -> None:
    # FOR NO KEY UPDATE: rows that refer to the shutdown may still be inserted meanwhile.
    locked = Shutdown.objects.select_for_update(no_key=True, of=("self",)).get(id=denial.id)
    locked.release()
    locked.released_by_ref = actor_reference(actor)
    locked.released_at = at
    locked.release_note = note
    locked.save(update_fields=["state", "released_by_ref", "released_at", "release_note"])


def _record(action: str, subject: Any, actor: Actor, payload: dict[str, Any], reason_code: str, at: datetime) -> None:
    ledger_append(
        action=action,
        organization_id=None,
        subject_type="shutdown" if action != "ledger.epoch_begun" else "ledger_epoch",
        subject_id=subject,
        actor=actor,
        at=at,
        payload=payload,
        reason_code=reason_code,
    )
