"""How far this process's clock is from the database's. Deadlines go by the database's clock; a worker whose own clock
is wrong says so, and drops no message because of it."""

import os
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from celery.signals import task_prerun, worker_init
from celery.worker.request import Request
from django.db import Error, connection
from prometheus_client import CollectorRegistry, Gauge
from redis.exceptions import RedisError

from governance.outside.valkey import valkey

log = structlog.get_logger("holdpoint.clocks")
KEY = "holdpoint:clocks"
MOST_SECONDS = 2.0
LOOK_SECONDS = 60.0
# What was not measured again for so long belongs to a process that is gone.
GONE = timedelta(seconds=4 * LOOK_SECONDS)


class OwnClock:
    """`ahead`: seconds by which this process's clock is ahead of the database's, as measured last."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._looked: float | None = None
        self._lock = threading.Lock()

    def look(self) -> None:
        """Measures at most once a minute. The database is asked by whichever task comes next."""
        with self._lock:
            if self._looked is not None and time.monotonic() - self._looked < LOOK_SECONDS:
                return
            self._looked = time.monotonic()
        try:
            self.ahead, at = seconds_ahead()
            if abs(self.ahead) > MOST_SECONDS:
                log.error("clock_differs", seconds=round(self.ahead, 1), host=socket.gethostname())
            valkey().hset(KEY, f"{socket.gethostname()}:{os.getpid()}", f"{self.ahead:.1f} {at.timestamp():.0f}")
        except (Error, RedisError) as error:  # readiness says that the server is away
            log.warning("clock_not_compared", error=type(error).__name__)

    def now(self) -> datetime:
        """The database's time, as far as it is known here."""
        return datetime.now(tz=UTC) - timedelta(seconds=self.ahead)


own_clock = OwnClock()


def seconds_ahead() -> tuple[float, datetime]:
    """By how much this process is ahead, and the database's time. The way there and back is taken as equal."""
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (at,) = cursor.fetchone()
    return (before + time.time()) / 2 - at.timestamp(), at


def clocks_measured() -> list[float]:
    """Seconds by which processes that answer here or work are ahead of the database (negative: behind)."""
    mine, now = seconds_ahead()
    found = [mine]
    try:
        measured = valkey().hgetall(KEY)
    except RedisError:  # readiness says that it is away
        measured = {}
    for field, text in measured.items():
        ahead, at = (float(part) for part in str(text).split())
        if now.timestamp() - at > GONE.total_seconds():
            valkey().hdel(KEY, field)
        else:
            found.append(ahead)
    return found


def clocks_apart() -> list[float]:
    """Those that differ too much."""
    return [ahead for ahead in clocks_measured() if abs(ahead) > MOST_SECONDS]


def fill_clocks(registry: CollectorRegistry, at: datetime) -> None:
    words = "By how much the clock of a process differs from the database's, the largest of all processes."
    differs = Gauge("holdpoint_clock_difference_seconds", words, registry=registry)
    differs.set(max(abs(ahead) for ahead in clocks_measured()))


@task_prerun.connect
def look_at_the_clock(task: Any = None, **_: Any) -> None:
    if not task.request.is_eager:
        own_clock.look()


@worker_init.connect
def look_first(**_: Any) -> None:
    """Before the first message, which may have an end."""
    own_clock.look()
    connection.close()


class FairRequest(Request):  # type: ignore[misc]
    """A message expires by the database's time: a worker that is a minute ahead would drop every tick, and say
    nothing."""

    def maybe_expire(self) -> bool:
        expires = self._expires
        if expires is None or own_clock.now() <= expires:
            return False
        log.info("message_expired", task=self.name, seconds=round((own_clock.now() - expires).total_seconds(), 1))
        return True
