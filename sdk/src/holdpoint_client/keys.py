"""Idempotency keys, stored before the first send: after a crash the same side effect is asked for under the same key.

A store maps your own name of a side effect (`ref`) to its key. What is in it is no secret.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from holdpoint_client.errors import RefUsed


@dataclass(frozen=True, slots=True)
class Stored:
    """`attempt_id` is None while no answer has come."""

    name: str
    key: str
    sha256: str
    created_at: float
    attempt_id: str | None = None


class KeyStore(Protocol):
    def reserve(self, name: str, sha256: str) -> Stored:
        """The key under this name, made if there is none. It is durable when this returns."""
        ...

    def answered(self, name: str, attempt_id: str) -> None: ...

    def pending(self) -> list[Stored]:
        """Asked, as far as is known, but never answered: ask again under the same names after a restart."""
        ...

    def forget(self, name: str) -> None:
        """Only when the side effect can never be asked for again."""
        ...


def same(stored: Stored, sha256: str) -> Stored:
    if stored.sha256 != sha256:
        raise RefUsed("this ref was used for another request; name each side effect with a ref of its own")
    return stored


class MemoryKeyStore:
    """For tests, and for callers that store the key themselves. A restart forgets everything."""

    def __init__(self) -> None:
        self._rows: dict[str, Stored] = {}
        self._lock = threading.Lock()

    def reserve(self, name: str, sha256: str) -> Stored:
        with self._lock:
            found = self._rows.setdefault(name, Stored(name, str(uuid4()), sha256, time.time()))
        return same(found, sha256)

    def answered(self, name: str, attempt_id: str) -> None:
        with self._lock:
            if name in self._rows:
                self._rows[name] = replace(self._rows[name], attempt_id=attempt_id)

    def pending(self) -> list[Stored]:
        with self._lock:
            return [row for row in self._rows.values() if row.attempt_id is None]

    def forget(self, name: str) -> None:
        with self._lock:
            self._rows.pop(name, None)


SCHEMA = """CREATE TABLE IF NOT EXISTS holdpoint_keys (
  name TEXT PRIMARY KEY, key TEXT NOT NULL, sha256 TEXT NOT NULL, created_at REAL NOT NULL, attempt_id TEXT) STRICT"""
COLUMNS = "name, key, sha256, created_at, attempt_id"


class SQLiteKeyStore:
    """One file for any number of threads and processes of a machine. Each call opens it anew, so it survives a fork."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._open() as connection:
            connection.execute(SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=FULL")  # on the disk before anything is sent
            yield connection
        finally:
            connection.close()

    def reserve(self, name: str, sha256: str) -> Stored:
        fresh = Stored(name, str(uuid4()), sha256, time.time())
        insert = f"INSERT OR IGNORE INTO holdpoint_keys ({COLUMNS}) VALUES (?, ?, ?, ?, NULL)"  # noqa: S608
        select = f"SELECT {COLUMNS} FROM holdpoint_keys WHERE name = ?"  # noqa: S608
        with self._open() as connection:
            connection.execute(insert, (fresh.name, fresh.key, fresh.sha256, fresh.created_at))
            return same(Stored(*connection.execute(select, (name,)).fetchone()), sha256)

    def answered(self, name: str, attempt_id: str) -> None:
        with self._open() as connection:
            connection.execute("UPDATE holdpoint_keys SET attempt_id = ? WHERE name = ?", (attempt_id, name))

    def pending(self) -> list[Stored]:
        select = f"SELECT {COLUMNS} FROM holdpoint_keys WHERE attempt_id IS NULL ORDER BY created_at"  # noqa: S608
        with self._open() as connection:
            return [Stored(*row) for row in connection.execute(select)]

    def forget(self, name: str) -> None:
        with self._open() as connection:
            connection.execute("DELETE FROM holdpoint_keys WHERE name = ?", (name,))


def default_path() -> Path:
    """`HOLDPOINT_KEY_STORE`, else where programs keep their state."""
    chosen = os.environ.get("HOLDPOINT_KEY_STORE")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "holdpoint" / "keys.sqlite3"
