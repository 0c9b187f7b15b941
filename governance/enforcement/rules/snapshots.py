"""Contracts, policies and regional terms, compiled once and found again by the SHA-256 that the facts name."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from governance.ledger.rules.entry import canonical_bytes, canonical_sha256

T = TypeVar("T")
MAX_CACHED: Final = 256


class SnapshotError(ValueError):
    """A snapshot that cannot be used. Evaluators that need it fail, which is a denial."""


class SnapshotMismatch(SnapshotError):
    """The content is not what the facts name by SHA-256."""


class SnapshotMalformed(SnapshotError):
    """The content does not have the shape of a snapshot of its kind."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """A compiled snapshot, nothing, or the kind of error that using it raises."""

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
    """Least recently used goes first. An entry is made only from content whose hash was computed here, and used only
    for that object or one equal to it: a snapshot under a false hash is refused with an empty cache and with a full
    one. What runs is always the content that the hash names, also if somebody changed the object afterwards."""

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
        except Exception:
            return Loaded(error=SnapshotMalformed)

    def _known(self, snapshot: Mapping[str, Any], sha256: str) -> Loaded[T] | None:
        with self._lock:
            entry = self._entries.get(sha256)
            if entry is None:
                return None
            self._entries.move_to_end(sha256)
        if entry.source is snapshot:
            return entry.loaded
        if entry.content != snapshot:
            return None
        entry.source = snapshot
        return entry.loaded

    def _add(self, snapshot: Mapping[str, Any], sha256: str) -> Loaded[T]:
        if canonical_sha256(snapshot) != sha256:
            raise SnapshotMismatch
        # Read back, so that nobody can change an entry later and a stored snapshot compiles to the same.
        content = json.loads(canonical_bytes(snapshot))
        loaded = Loaded(self._compile(content))
        with self._lock:
            self._entries[sha256] = _Entry(snapshot, content, loaded)
            while len(self._entries) > MAX_CACHED:
                self._entries.popitem(last=False)
        return loaded
