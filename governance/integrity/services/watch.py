"""The continuous check: what is new within a minute, and the rest in rounds, a little at every tick."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction

from governance.integrity.models import RecordProgress
from governance.integrity.selectors.changes import tables_mark
from governance.integrity.selectors.standing import rows_put_in
from governance.integrity.services.faults import faults_record
from governance.integrity.states import FoundBy
from governance.record.rules.compare import Compared, RowKey
from governance.record.selectors.rows import parts_sealed, parts_unsealed, shapes_stored
from governance.record.services.verify import (
    RecordDifference,
    Shapes,
    differences,
    later_rows,
    parts_compare,
    record_new_verify,
)
from governance.sealing.selectors.tree import checkpoint_latest

# Any number that no other advisory lock uses: one watcher at a time; the others have nothing to do.
LOCK: Final = 0x72656372
# Leaves per look. Small, so that a round stops close to its budget.
STEP: Final = 512
# Rows that a round remembers as later than their items. Normally those that were under way at that moment of the
# history; more are left to the full check.
MOST_LATER: Final = 20_000
# Of those that the round's end did not explain: each is looked for in the whole record.
MOST_SOUGHT: Final = 100
Clock = Callable[[], float]
# Where nothing is written, everything is looked at again after so long.
AGAIN: Final = timedelta(minutes=15)


@dataclass
class LastLook:
    """For whoever looks again and again: what the tables were at the last look, and when that was."""

    mark: str = ""
    at: datetime | None = None

    def is_enough(self, mark: str, at: datetime) -> bool:
        return mark == self.mark and self.at is not None and at - self.at < AGAIN


def record_watch(
    *,
    at: datetime,
    seconds: float,
    most_new: int = 50_000,
    clock: Clock = time.monotonic,
    last: LastLook | None = None,
) -> int:
    """Compare what is new, then go on with the round for at most `seconds`. Returns how many faults are new. `last`: do
    nothing if nothing was written since then, and no round is under way."""
    mark = tables_mark() if last else ""  # before the snapshot: what is written after it makes another mark
    if last and last.is_enough(mark, at) and _as_it_was(at):
        return 0
    with _alone() as alone:
        if not alone:
            return 0
        found = _look(at=at, seconds=seconds, most_new=most_new, clock=clock)
    if last:
        last.mark, last.at = mark, at
    return len(faults_record(found=found, found_by=FoundBy.CLOCK, at=at))


def _as_it_was(at: datetime) -> bool:
    """Notes that new rows are compared, unless some are not yet or a round is under way."""
    head = checkpoint_latest()
    done = RecordProgress.objects.filter(id=1, round_began_at=None, checked_to__gte=head.size if head else 0)
    return done.update(checked_at=at) == 1


@contextmanager
def _alone() -> Iterator[bool]:
    # A lock of the session, before the snapshot: otherwise the second watcher would see the progress from before the
    # first one's commit, and fail when it writes its own.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        alone = bool(cursor.fetchone()[0])
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _look(*, at: datetime, seconds: float, most_new: int, clock: Clock) -> list[RecordDifference]:
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        # One snapshot for items, rows and counts: rows that are written meanwhile would look unexplained.
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        progress = RecordProgress.objects.get_or_create(id=1)[0]
        found = _new(progress, most_new)
        found += _round(progress, at, clock() + seconds, clock)
        progress.checked_at = at
        progress.save()
    return found


def _new(progress: RecordProgress, most: int) -> list[RecordDifference]:
    # Rows that are known to be without an entry are counted in: otherwise each tick would search the whole record for
    # them, for as long as they are there.
    result = record_new_verify(
        first=progress.checked_to,
        most=most,
        known={int(n): c for n, c in progress.counts.items()},
        put_in=rows_put_in(),
    )
    progress.checked_to = result.checked_to
    progress.counts = {str(number): count for number, count in result.counts.items()}
    return result.faults


def _round(progress: RecordProgress, at: datetime, until: float, clock: Clock) -> list[RecordDifference]:
    """The next leaves of the round. What was compared when it was new is compared again: a row can be changed later."""
    shapes = shapes_stored()
    whole = Compared()
    later = _read(progress.later)
    ended: list[RecordDifference] = []
    if progress.round_began_at is None:
        progress.round_began_at = at
    while clock() < until:
        end = min(progress.walked_to + STEP, progress.checked_to)
        if end <= progress.walked_to:
            progress.walked_to, progress.round_ended_at, progress.round_began_at = 0, at, None
            ended, later = _unexplained(later, shapes), {}
            break
        step = parts_compare(parts_sealed(first=progress.walked_to, before=end), shapes)
        _remember(later, step)
        whole.add(step)
        progress.walked_to = end
    progress.later = {f"{key.number}/{key.row_id.hex()}": version for key, version in later.items()}
    # A row that is missing here may be explained by a deletion later in the record: that is looked up for each.
    return differences(whole, shapes) + ended


def _read(later: dict[str, int]) -> dict[RowKey, int]:
    parts = {name.partition("/"): version for name, version in later.items()}
    return {RowKey(int(number), bytes.fromhex(row_id)): version for (number, _, row_id), version in parts.items()}


def _remember(later: dict[RowKey, int], step: Compared) -> None:
    """A row whose version is later than its item must be met again, in the leaf that has its newest item."""
    for key in step.met:
        later.pop(key, None)
    for key, version in step.later.items():
        if len(later) < MOST_LATER:
            later[key] = version


def _unexplained(later: dict[RowKey, int], shapes: Shapes) -> list[RecordDifference]:
    """At the end of the round: what was met in no leaf was changed meanwhile, or without the ledger."""
    met = parts_compare(parts_unsealed(), shapes).met
    left = [key for key in later if key not in met][:MOST_SOUGHT]
    return later_rows({key: later[key] for key in left}, shapes)
