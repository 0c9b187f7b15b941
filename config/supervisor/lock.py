"""One stack per folder: a lock that the kernel drops with its holder, so kill -9 leaves nothing stale."""

import fcntl
import os
from pathlib import Path

from config.supervisor.errors import StartError


class FolderLock:
    """Held from `take` until the process ends or `release`. The file's text tells others who holds it."""

    def __init__(self, *, file: Path) -> None:
        self.file = file
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Whether the lock is ours now."""
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def take(self, *, note: str) -> None:
        """Take the lock and leave `note` for the next one who tries."""
        if not self.try_take():
            held_by = self.file.read_text().strip() or "just starting"
            raise StartError(f"Holdpoint already runs from {self.file.parent.parent} ({held_by}).")
        assert self._descriptor is not None  # noqa: S101 - just taken
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, note.encode(), 0)

    def release(self) -> None:
        """Empty the note and let go; the file stays, since removing it would let two holders in."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
