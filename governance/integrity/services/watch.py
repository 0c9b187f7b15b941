"""The continuous check: what is new within a minute, and the rest in rounds, a little at every tick."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from django.db import connection, transaction

from governance.integrity.models import RecordProgress
from governance.integrity.services.faults import faults_record
from governance.integrity.states import FoundBy
from governance.record.rules.compare import Compared
from governance.record.selectors.rows import parts_sealed, shapes_stored
from governance.record.services.verify import RecordDifference, differences, parts_compare, record_new_verify

# Any number that no other advisory lock uses: one watcher at a time; the others have nothing to do.
LOCK: Final = 0x72656372
# Leaves per look. Small, so that a round stops close to its budget.
STEP: Final = 512
Clock = Callable[[], float]


def record_watch(*, at: datetime, seconds: float, most_new: int = 50_000, clock: Clock = time.monotonic) -> int:
    """Compare what is new, then go on with the round for at most `seconds`. Returns how many faults are new."""
    with _alone() as alone:
        if not alone:
            return 0
        found = _look(at=at, seconds=seconds, most_new=most_new, clock=clock)
    return len(faults_record(found=found, found_by=FoundBy.CLOCK, at=at))


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
    result = record_new_verify(
        first=progress.checked_to, most=most, known={int(n): c for n, c in progress.counts.items()}
    )
    progress.checked_to = result.checked_to
    progress.counts = {str(number): count for number, count in result.counts.items()}
    return result.faults


def _round(progress: RecordProgress, at: datetime, until: float, clock: Clock) -> list[RecordDifference]:
    """The next leaves of the round. What was compared when it was new is compared again: a row can be changed later."""
    shapes = shapes_stored()
    whole = Compared()
    if progress.round_began_at is None:
        progress.round_began_at = at
    while clock() < until:
        end = min(progress.walked_to + STEP, progress.checked_to)
        if end <= progress.walked_to:
            progress.walked_to, progress.round_ended_at, progress.round_began_at = 0, at, None
            break
        whole.add(parts_compare(parts_sealed(first=progress.walked_to, before=end), shapes))
        progress.walked_to = end
    # A row that is missing here may be explained by a deletion later in the record: that is looked up for each.
    return differences(whole, shapes)
