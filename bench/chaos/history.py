"""The history of a run: one JSON line per operation, fault, effect, and at the end the state of the record."""

import json
import threading
import time
from pathlib import Path
from typing import Any, TextIO


class History:
    """Times are seconds since the beginning, of one clock."""

    def __init__(self, path: Path) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._file: TextIO = path.open("w")
        self.counts: dict[str, int] = {}

    def now(self) -> float:
        return round(time.monotonic() - self._began, 4)

    def write(self, kind: str, **values: Any) -> None:
        with self._lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self._file.write(json.dumps({"kind": kind, **values}) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_history(path: Path) -> list[dict[str, Any]]:
    with path.open() as lines:
        return [json.loads(line) for line in lines]
