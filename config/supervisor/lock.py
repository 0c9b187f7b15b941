"""One stack per folder. The kernel releases the lock when its owner ends, so kill -9 leaves no stale lock."""

import fcntl
import os
from pathlib import Path

from config.supervisor.errors import StartError


class FolderLock:
    """Ours from `take` until `release` or the end of the process. The text of the file tells others who has it."""

    def __init__(self, *, file: Path) -> None:
        self.file = file
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Returns whether the lock is ours now."""
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def take(self, *, note: str) -> None:
        """Takes the lock, and writes `note` for the next one who tries."""
        if not self.try_take():
            held_by = self.file.read_text().strip() or "just starting"
            raise StartError(f"Holdpoint already runs from {self.file.parent.parent} ({held_by}).")
        assert self._descriptor is not None  # noqa: S101 - just taken
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, note.encode(), 0)

    def release(self) -> None:
        """Empties the note and releases the lock."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            # The file stays: if it were removed, one process could lock the old file and another one a new file of the
            # same name.
            os.close(self._descriptor)
            self._descriptor = None
