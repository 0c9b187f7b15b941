"""Signed heads go to a witness, oldest first; its answer is on record. A witness that is away holds nothing up."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from django.db import connection

from governance.ledger.epoch import epoch_of
from governance.merkle.checkpoint import checkpoint_read
from governance.models import LedgerCheckpoint, WitnessReceipt
from governance.selectors.witness import heads_due, paused_until
from governance.states import WitnessResult
from governance.witnesses import Witness, WitnessFailed

LOCK = 0x7769746E  # any constant that nobody else uses
BATCH = 50


@dataclass(frozen=True, slots=True)
class Pushed:
    stored: int = 0
    failed: str = ""


def witness_push(*, at: datetime, witness: Witness, batch: int = BATCH) -> Pushed:
    """One batch. A head that was stored and not recorded (a crash in between) is sent again, which changes nothing."""
    with _alone(witness) as alone:
        pause = paused_until(witness=witness.name) if alone else None
        if not alone or (pause is not None and pause > at):
            return Pushed()
        stored = 0
        for head in heads_due(witness=witness.name, limit=batch):
            try:
                witness.push(head.text, size=head.size, epoch=epoch_of(checkpoint_read(head.text)[0]))
            except WitnessFailed as failure:
                result = WitnessResult.REFUSED if failure.refused else WitnessResult.FAILED
                _record(witness, head, result, failure.code, at)
                return Pushed(stored, failure.code)
            _record(witness, head, WitnessResult.STORED, "", at)
            stored += 1
        return Pushed(stored)


def _record(witness: Witness, head: LedgerCheckpoint, result: WitnessResult, detail: str, at: datetime) -> None:
    row = WitnessReceipt(witness=witness.name, size=head.size, root=head.root, result=result, detail=detail, at=at)
    WitnessReceipt.objects.bulk_create([row], ignore_conflicts=True)


@contextmanager
def _alone(witness: Witness) -> Iterator[bool]:
    """One pusher per witness. A lock of the session, not of a transaction: none is open while the witness is asked."""
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
