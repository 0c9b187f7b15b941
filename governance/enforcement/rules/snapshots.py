"""A cache of compiled contracts, policies and regional terms, by the SHA-256 that the facts name."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from governance.ledger.rules.entry import canonical_bytes, canonical_sha256

T = TypeVar("T")
# Compiled snapshots per kind. Without a limit, a replay of years of decisions would keep every version in memory.
MAX_CACHED: Final = 256


class SnapshotError(ValueError):
    """A snapshot that cannot be used. An evaluator that needs it fails, and the request is denied."""


class SnapshotMismatch(SnapshotError):
    """The content does not have the SHA-256 that the facts name."""


class SnapshotMalformed(SnapshotError):
    """The content does not have the shape of a snapshot of its kind."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """A compiled snapshot, or None if there is none, or the error that reading it raises."""

    value: T | None = None
    error: type[SnapshotError] | None = None

    def get(self) -> T | None:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(slots=True)
class _Entry(Generic[T]):
    source: Mapping[str, Any]
    content: dict[str, Any]
    loaded: Loaded[T]


class SnapshotCache(Generic[T]):
    """Drops the least recently used entry when it is full.

    An entry is made only from content whose hash was computed here, and is used only for that object or an equal one.
    A snapshot under a wrong hash is refused, whether the cache is empty or full, and what is compiled is always the
    content that the hash names."""

    def __init__(self, compile_snapshot: Callable[[dict[str, Any]], T]) -> None:
        self._compile = compile_snapshot
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()
        self._lock = Lock()

    def load(self, snapshot: Mapping[str, Any] | None, *, sha256: Any) -> Loaded[T]:
        """Never raises."""
        if snapshot is None:
            return Loaded()
        try:
            return self._known(snapshot, sha256) or self._add(snapshot, sha256)
        except SnapshotError as error:
            return Loaded(error=type(error))
        except Exception:  # whatever compiling raises, the request must be denied with a reason
            return Loaded(error=SnapshotMalformed)

    def _known(self, snapshot: Mapping[str, Any], sha256: str) -> Loaded[T] | None:
        # Threads share the cache. Without the lock, another thread could drop the entry between `get` and
        # `move_to_end`, which would raise KeyError.
        with self._lock:
            entry = self._entries.get(sha256)
            if entry is None:
                return None
            self._entries.move_to_end(sha256)
        # The same object as last time (snapshots are cached by `snapshot_load`): comparing ten documents is saved.
        if entry.source is snapshot:
            return entry.loaded
        if entry.content != snapshot:
            return None
        entry.source = snapshot
        return entry.loaded

    def _add(self, snapshot: Mapping[str, Any], sha256: str) -> Loaded[T]:
        if canonical_sha256(snapshot) != sha256:
            raise SnapshotMismatch
        # A copy that is read back from canonical JSON: nobody can change the entry later, and a stored snapshot
        # compiles to the same.
        content = json.loads(canonical_bytes(snapshot))
        loaded = Loaded(self._compile(content))
        with self._lock:
            self._entries[sha256] = _Entry(snapshot, content, loaded)
            while len(self._entries) > MAX_CACHED:
                self._entries.popitem(last=False)
        return loaded
