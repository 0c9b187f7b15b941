"""Counts what the simulator has done since its last report."""

import threading
from collections import Counter


class ModuleTally:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        # Several threads count; without the lock an increment could be lost, or fall between copy and clear.
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def reset(self) -> dict[str, int]:
        with self._lock:
            found = dict(sorted(self._counts.items()))
            self._counts.clear()
        return found
