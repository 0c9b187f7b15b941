"""How many places of each lane are in use. Every worker notes it in Valkey; readiness and metrics read it."""

import os
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import structlog
from celery.signals import (
    celeryd_init,
    task_postrun,
    task_prerun,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from redis.exceptions import RedisError

from attempts.execution.services.work import work_stop
from config.lanes import LANE_OF, LANES, lanes_of
from governance.outside.valkey import valkey
from workflows.webhooks.services.sender import sending_stop

KEY = "holdpoint:lanes"
# A worker that has written nothing for so long is gone.
GONE_SECONDS = 30.0
LOOK_SECONDS = 2.0
WRITE_SECONDS = 10.0
log = structlog.get_logger("holdpoint.lanes")


@dataclass(frozen=True, slots=True)
class LanePlaces:
    """Over all workers of a lane. `size` 0: it has no worker."""

    busy: int = 0
    size: int = 0


class LaneNotes:
    """Counts the tasks that run in this process, and writes it down while the worker runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        self._ended = threading.Event()
        self._sizes: dict[str, int] = {}

    def began(self, task: str) -> None:
        self._count(task, 1)

    def finished(self, task: str) -> None:
        self._count(task, -1)

    def _count(self, task: str, by: int) -> None:
        if lane := LANE_OF.get(task):
            with self._lock:
                self._busy[lane] += by

    def start(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self._ended.clear()
        threading.Thread(target=self._write_on, name="lane-notes", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _write_on(self) -> None:
        """Looks often and writes seldom: an idle worker must cost nothing."""
        written: dict[str, str] = {}
        at = 0.0
        while True:
            ended = self._ended.is_set()
            now = {lane: f"{self._busy[lane]} {size}" for lane, size in self._sizes.items()}
            if ended or now != written or time.monotonic() - at > WRITE_SECONDS:
                self._write({} if ended else now)
                written, at = now, time.monotonic()
            if ended:
                return
            self._ended.wait(LOOK_SECONDS)

    def _write(self, now: dict[str, str]) -> None:
        here = f"{socket.gethostname()}:{os.getpid()}"
        try:
            _tidy()
            for lane in self._sizes:
                if lane in now:
                    valkey().hset(KEY, f"{lane}|{here}", f"{now[lane]} {time.time():.0f}")
                else:
                    valkey().hdel(KEY, f"{lane}|{here}")
        except RedisError as error:  # readiness says that Valkey is away
            log.warning("lane_not_noted", error=type(error).__name__)


def _entries() -> dict[str, tuple[str, int, int, float]]:
    """By field: lane, busy, size, and when it was written."""
    found = {}
    for raw, text in valkey().hgetall(KEY).items():
        field = str(raw)
        busy, size, at = text.split()
        found[field] = (field.partition("|")[0], int(busy), int(size), float(at))
    return found


def _tidy() -> None:
    gone = [field for field, (*_, at) in _entries().items() if time.time() - at > 2 * GONE_SECONDS]
    if gone:
        valkey().hdel(KEY, *gone)


def lane_places() -> dict[str, LanePlaces]:
    """Every lane. RedisError if Valkey is away."""
    found = dict.fromkeys(LANES, LanePlaces())
    for lane, busy, size, at in _entries().values():
        if lane in found and time.time() - at <= GONE_SECONDS:
            before = found[lane]
            found[lane] = LanePlaces(before.busy + busy, before.size + size)
    return found


notes = LaneNotes()


@celeryd_init.connect
def lane_size(conf: Any = None, options: dict[str, Any] | None = None, **_: Any) -> None:
    """As many threads as the settings give to the lanes of this worker. `--concurrency` wins."""
    queues = (options or {}).get("queues") or ()
    names = queues.split(",") if isinstance(queues, str) else list(queues)
    conf.worker_concurrency = sum(settings.LANE_PLACES[lane] for lane in lanes_of(names))


@worker_ready.connect
def notes_begin(sender: Any = None, **_: Any) -> None:
    lanes = lanes_of(sender.app.amqp.queues.consume_from)
    if len(lanes) == 1:
        notes.start({lanes[0]: sender.pool.limit})
    else:  # a worker for several lanes shares its threads among them
        notes.start({lane: settings.LANE_PLACES[lane] for lane in lanes})


@worker_shutting_down.connect
def stop_taking(**_: Any) -> None:
    """A worker that is told to end finishes its calls and begins no other."""
    work_stop()
    sending_stop()


@worker_shutdown.connect
def notes_end(**_: Any) -> None:
    notes.stop()


@task_prerun.connect
def note_began(task: Any = None, **_: Any) -> None:
    notes.began(getattr(task, "name", ""))


@task_postrun.connect
def note_finished(task: Any = None, **_: Any) -> None:
    notes.finished(getattr(task, "name", ""))
