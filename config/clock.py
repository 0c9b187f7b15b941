"""Notes when each built-in scheduled task begins, ends and fails, so that one that does not run is noticed."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from celery.signals import beat_init, task_failure, task_prerun, task_success
from redis.exceptions import RedisError

from config.celery import SCHEDULE
from governance.schedule.adapters import BEGAN, ENDED, FAILED, clock_started, run_marked

NAMES = {task: name for name, (task, _) in SCHEDULE.items()}
# Wake-ups run some of these tasks hundreds of times a second. One note per second is enough to see that they run.
SECONDS_BETWEEN_NOTES = 1.0
_noted: dict[tuple[str, str], float] = {}


def _note(task: Any, mark: str) -> None:
    name = NAMES.get(getattr(task, "name", ""))
    now = time.monotonic()
    if name is None or now - _noted.get((name, mark), -SECONDS_BETWEEN_NOTES) < SECONDS_BETWEEN_NOTES:
        return
    _noted[name, mark] = now
    # The task itself matters more than the note about it.
    with suppress(RedisError):
        run_marked(name=name, mark=mark, at=datetime.now(tz=UTC))


@task_prerun.connect
def note_begin(task: Any = None, **_: Any) -> None:
    _note(task, BEGAN)


@task_success.connect
def note_end(sender: Any = None, **_: Any) -> None:
    _note(sender, ENDED)


@task_failure.connect
def note_failure(sender: Any = None, **_: Any) -> None:
    _note(sender, FAILED)


@beat_init.connect
def note_start(**_: Any) -> None:
    with suppress(RedisError):
        clock_started(at=datetime.now(tz=UTC))
