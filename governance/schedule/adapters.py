"""When scheduled tasks ran, in Valkey. If it is lost, the next runs write it again."""

from datetime import UTC, datetime
from typing import Any

from governance.outside.valkey import valkey
from governance.schedule.rules import RunMarks

KEY = "holdpoint:clock"
SINCE = "since"
BEGAN, ENDED, FAILED = "began", "ended", "failed"


def clock_started(*, at: datetime) -> None:
    """Called when beat starts: what did not run while it was away is not late yet."""
    valkey().hset(KEY, SINCE, str(at.timestamp()))


def run_marked(*, name: str, mark: str, at: datetime) -> None:
    client = valkey()
    client.hset(KEY, f"{name}:{mark}", str(at.timestamp()))
    client.hsetnx(KEY, SINCE, str(at.timestamp()))


def runs_marked() -> tuple[datetime | None, dict[str, RunMarks]]:
    """When the clock started, and the marks of every task that has any."""
    stored: Any = valkey().hgetall(KEY)
    found: dict[str, datetime] = {key: datetime.fromtimestamp(float(at), tz=UTC) for key, at in stored.items()}
    names = {key.rpartition(":")[0] for key in found if key != SINCE}
    marks = {name: RunMarks(*(found.get(f"{name}:{mark}") for mark in (BEGAN, ENDED, FAILED))) for name in names}
    return found.get(SINCE), marks
