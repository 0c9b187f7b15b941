"""The built-in scheduled tasks as data: how often each runs, within which bounds that may be changed, and when one is
overdue. Their table is `SCHEDULE` in `config/celery.py`."""

from dataclasses import dataclass
from datetime import datetime

# An hour: nothing that ends by the clock may wait longer because somebody made the interval longer.
LONGEST_SECONDS = 3600
FACTOR = 10


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """One built-in scheduled task. `words` say what it does, for people. `swept`: at each interval it is sent only if
    it has work, but at the latest after so many seconds; 0: it is sent at each."""

    name: str
    task: str
    seconds: int
    words: str
    swept: float = 0.0

    @property
    def shortest(self) -> int:
        return max(1, self.seconds // FACTOR)

    @property
    def longest(self) -> int:
        return max(self.seconds, min(self.seconds * FACTOR, LONGEST_SECONDS))


@dataclass(frozen=True, slots=True)
class RunMarks:
    """When a task last began, ended well and failed, as workers noted it. None: not noted."""

    began: datetime | None = None
    ended: datetime | None = None
    failed: datetime | None = None

    @property
    def is_running(self) -> bool:
        ends = [moment for moment in (self.ended, self.failed) if moment is not None]
        return self.began is not None and all(moment < self.began for moment in ends)


NO_MARKS = RunMarks()


def overdue_seconds(
    marks: RunMarks, *, seconds: int, since: datetime | None, grace: float, at: datetime, swept: float = 0.0
) -> float | None:
    """For how long a task is overdue; None if it is not. `since`: when the clock started, because a task that has not
    run yet is only then late. A run that failed does not count as one."""
    last = marks.began if marks.is_running else marks.ended
    known = [moment for moment in (last, since) if moment is not None]
    if not known:
        return None
    late = (at - max(known)).total_seconds() - max(seconds * 2, swept) - grace
    return late if late > 0 else None
