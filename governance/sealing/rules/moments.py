"""Whether the time that an entry tells fits the time at which its transaction ended. Pure."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

# As the database refuses a new entry (governance migration 0028), with an hour for the transaction's own length.
AHEAD: Final = timedelta(minutes=5)
BACK: Final = timedelta(hours=25)
# They date back: a deadline that passed while nothing ran is recorded with its own time.
DATE_BACK: Final = frozenset({"clock", "system"})
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment_fits(*, told: datetime, clock: int, actor_kind: str) -> bool:
    """`told` is the entry's time, `clock` the database's when the transaction ended (microseconds since 1970)."""
    ended = EPOCH + timedelta(microseconds=clock)
    return told <= ended + AHEAD and (actor_kind in DATE_BACK or told >= ended - BACK)


def clocks_gone_back(clocks: Iterable[tuple[int, int]]) -> Iterator[int]:
    """`clocks`: position and clock, in the order of the log, which is that in which transactions began. The positions
    whose transaction ended more than a day before one that began earlier had ended: none takes that long, so the
    database's clock was set back."""
    newest = 0
    for position, clock in clocks:
        if clock < newest - BACK // timedelta(microseconds=1):
            yield position
            newest = clock
        newest = max(newest, clock)
