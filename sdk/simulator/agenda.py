"""The answers that wait to be sent, by due time. Threads take from it. It is only in memory: after a crash the requests
are delivered again."""

import heapq
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from sdk.simulator.streams import Entry


@dataclass(slots=True)
class Delivery:
    """A request that is being answered. It is acknowledged when `left` is 0."""

    entry: Entry
    left: int


@dataclass(order=True, slots=True)
class AgendaItem:
    at: float
    envelope: dict[str, Any] = field(compare=False)
    delivery: Delivery = field(compare=False)
    tries: int = field(default=0, compare=False)


class Agenda:
    """`rate` is the maximum per second; 0 means no limit."""

    def __init__(self, *, rate: float = 0.0) -> None:
        self._heap: list[AgendaItem] = []
        # A lock for heap and slot, and a signal for sleeping threads: an earlier item may come while they wait.
        self._changed = threading.Condition()
        self._gap = 1 / rate if rate else 0.0
        self._next_slot = 0.0
        self._closed = False

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, due: AgendaItem) -> None:
        with self._changed:
            heapq.heappush(self._heap, due)
            self._changed.notify()

    def take(self) -> AgendaItem | None:
        """Wait for the next due item and return it; None after the agenda was closed."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                ready = max(self._heap[0].at, self._next_slot) if self._heap else None
                if ready is not None and ready <= now:
                    # From now, not from the last slot: after a pause there is no burst beyond the rate.
                    self._next_slot = max(self._next_slot, now) + self._gap
                    return heapq.heappop(self._heap)
                self._changed.wait(timeout=None if ready is None else ready - now)
            return None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
