"""Sends what is due until nothing is left. HTTP in threads; the database only in the thread that runs the task, because
connections belong to a thread.

Receivers have shares of the threads, as those of attempts do: one that hangs keeps a few, and those that answer quickly
never wait for it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from attempts.receivers.rules import Bulkheads
from governance.outside.wake_up import wake_up_received
from workflows.runs.services.metrics import WEBHOOK_SECONDS, WEBHOOKS
from workflows.webhooks.adapters import WebhookResult, webhook_send
from workflows.webhooks.selectors import DueDelivery, EndpointRooms
from workflows.webhooks.services.deliver import LEASE, DeliveryJob, attempts_settle, deliveries_take
from workflows.webhooks.services.gather import TASK

PLACES = 32
# Of them, for an endpoint that is not known to answer quickly. Webhooks have more receivers than adapters have.
SMALL_SHARE = 2
# And for one that does: a receiver should not need a long queue for our connections.
LARGE_SHARE = 8
# A look is at the earliest so long after the one before: what is due and what has come back by then is one transaction.
PAUSE_SECONDS = 0.04
# Another process may have made something due without waking this one.
LOOK_SECONDS = 1.0


class SenderBell:
    """At most one sender runs in a process. Whoever wants another one wakes it up instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = False
        self._rung = threading.Event()
        self.ending = False
        self.shares = Bulkheads(PLACES, small=SMALL_SHARE, large=LARGE_SHARE)

    def begin(self) -> bool:
        with self._lock:
            if self._running:
                self._rung.set()
                return False
            self._running = True
            self._rung.clear()
            return True

    def ring(self, *_: object) -> None:
        self._rung.set()

    def wait(self, seconds: float) -> None:
        self._rung.wait(seconds)
        self._rung.clear()

    def end_unless_rung(self) -> bool:
        """Somebody may have rung after the last look: then there is more to do."""
        with self._lock:
            if self._rung.is_set() and not self.ending:
                self._rung.clear()
                return False
            self._running = False
            return True

    def end(self) -> None:
        with self._lock:
            self._running = False


_bell = SenderBell()


def sending_stop() -> None:
    """The process is told to end: what is under way is finished, and nothing else begun."""
    _bell.ending = True
    _bell.ring()


def deliveries_send(
    *, now: Callable[[], datetime], private_hosts: frozenset[str], senders: int = 1, lease: timedelta = LEASE
) -> int:
    """Send until nothing is due; returns the number of tries. At most `senders` processes send at the same time."""
    tries = 0
    if not _bell.begin():
        return tries
    try:
        while True:
            with _sender_slot(senders) as found:
                if found:
                    tries += _Sender(_bell, now, private_hosts, lease).run()
            if _bell.end_unless_rung():
                return tries
    except BaseException:
        _bell.end()
        raise


@dataclass(frozen=True, slots=True)
class _Running:
    job: DeliveryJob
    began: float


@dataclass
class _Sender:
    bell: SenderBell
    now: Callable[[], datetime]
    private_hosts: frozenset[str]
    lease: timedelta
    running: dict[Future[WebhookResult], _Running] = field(default_factory=dict)
    tries: int = 0

    def run(self) -> int:
        with ThreadPoolExecutor(PLACES, thread_name_prefix="webhook") as pool:
            try:
                while True:
                    looked = time.monotonic()
                    # At every look: whoever commits after it sends a wake-up again, and so at most one for each look.
                    wake_up_received(TASK)
                    if not self.bell.ending:
                        self._start(pool)
                    if not self.running:
                        return self.tries
                    self.bell.wait(LOOK_SECONDS)
                    time.sleep(max(0.0, PAUSE_SECONDS - (time.monotonic() - looked)))
                    self._settle()
            finally:  # after an error: their leases end, and they are sent again
                for one in self.running.values():
                    self.bell.shares.withdraw(one.job.endpoint_id, began=one.began)

    def _start(self, pool: ThreadPoolExecutor) -> None:
        free, began = PLACES - len(self.running), time.monotonic()
        if not free:
            return
        shares, begun = self.bell.shares, Counter[UUID]()

        def admitted(due: list[DueDelivery]) -> list[DueDelivery]:
            found: list[DueDelivery] = []
            for one in due:
                if len(found) < free and shares.has_room(one.endpoint_id, now=began):
                    shares.begin(one.endpoint_id, now=began)
                    begun[one.endpoint_id] += 1
                    found.append(one)
            return found

        try:
            for job in deliveries_take(
                at=self.now(),
                most=8 * PLACES,
                private_hosts=self.private_hosts,
                rooms=self._rooms(began),
                admitted=admitted,
                lease=self.lease,
            ):
                begun[job.endpoint_id] -= 1
                future = pool.submit(webhook_send, job.sending)
                self.running[future] = _Running(job, began)
                future.add_done_callback(self.bell.ring)
        finally:  # another sender has some of them
            for endpoint_id in begun.elements():
                shares.withdraw(endpoint_id, began=began)

    def _rooms(self, now: float) -> EndpointRooms:
        shares, under_way = self.bell.shares, Counter(one.job.endpoint_id for one in self.running.values())
        rooms = {endpoint_id: shares.room(endpoint_id, now=now) for endpoint_id in shares.known()}
        quick = [endpoint_id for endpoint_id in rooms if shares.is_quick(endpoint_id, now=now)]
        return EndpointRooms(default=shares.small, rooms=rooms, quick=quick, under_way=under_way)

    def _settle(self) -> None:
        done = [future for future in self.running if future.done()]
        if not done:
            return
        ended, came_back = time.monotonic(), []
        for future in done:
            one, sent = self.running.pop(future), future.result()
            came_back.append((one.job, sent))
            answered = sent.status is not None
            self.bell.shares.end(one.job.endpoint_id, began=one.began, now=ended, good=answered)
        attempts_settle(came_back=came_back, at=self.now())
        for _, sent in came_back:
            WEBHOOKS.labels(sent.outcome).inc()
            WEBHOOK_SECONDS.observe(sent.duration_ms / 1000)
        self.tries += len(came_back)


@contextmanager
def _sender_slot(senders: int) -> Iterator[bool]:
    """One of the sender slots, if one is free."""
    # Session advisory locks: PostgreSQL releases the slot of a killed sender together with its connection.
    taken = next((place for place in range(senders) if _advisory("pg_try_advisory_lock", place)), None)
    try:
        yield taken is not None
    finally:
        if taken is not None:
            _advisory("pg_advisory_unlock", taken)


def _advisory(function: str, place: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s, 7))", [f"webhook-sender:{place}"])
        return bool(cursor.fetchone()[0])
