"""When failures of one contract are so many that operators are asked to shut it down. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta


def reached(opened: Sequence[datetime], *, after: int, window: timedelta) -> datetime | None:
    """The moment of the case with which there were `after` cases within the window; None if there never were.
    `opened` is in order."""
    for first, last in zip(opened, opened[after - 1 :], strict=False):
        if last - first <= window:
            return last
    return None
