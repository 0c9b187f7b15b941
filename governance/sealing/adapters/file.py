"""A witness that is a file: one line of JSON per head, only appended. Keep it on another disk or machine, append-only
there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from governance.sealing.adapters.base import WitnessFailed

# How much of the end is read for the newest heads. A line has some hundred bytes; the file grows for ever.
TAIL_BYTES = 16 * 1024


class FileWitness:
    def __init__(self, *, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    def push(self, text: str, *, size: int, epoch: int) -> None:
        """Append the head and flush it to the disk."""
        line = json.dumps({"size": size, "epoch": epoch, "checkpoint": text}) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # A crash can leave half a line. Without a line break this head would become part of it.
                torn = self._torn(descriptor)
                # One write with O_APPEND: a second process cannot write into the middle of the line.
                os.write(descriptor, (b"\n" if torn else b"") + line.encode())
                # "Stored" is recorded after this. A head that is only in memory would be lost with the machine.
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise WitnessFailed(f"file_{type(error).__name__}") from error

    @staticmethod
    def _torn(descriptor: int) -> bool:
        size = os.fstat(descriptor).st_size
        return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"

    def newest(self) -> list[str]:
        try:
            with self.path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - TAIL_BYTES))
                lines = stream.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise WitnessFailed(f"file_{type(error).__name__}") from error
        return [text for line in lines if (text := _text(line)) is not None]

    def heads(self) -> Iterator[str]:
        try:
            with self.path.open("rb") as stream:
                for line in stream:
                    text = _text(line)
                    if text is not None:
                        yield text
        except FileNotFoundError:
            return
        except OSError as error:
            raise WitnessFailed(f"file_{type(error).__name__}") from error


def _text(line: bytes) -> str | None:
    try:
        found = json.loads(line)
        return str(found["checkpoint"])
    except (ValueError, KeyError, TypeError):
        return None
