"""Ctrl-C and SIGTERM as a flag that every wait checks, so that a signal never interrupts a start halfway."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType

from config.supervisor.errors import StopRequested

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS = 0.05


class StopFlag:
    """Set by the first signal."""

    def __init__(self) -> None:
        self.requested = False
        # A pipe and no threading.Event: its lock may be held by the very code that the signal interrupts.
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def install(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        with contextlib.suppress(BlockingIOError):  # full of earlier signals
            os.write(self._wake, b".")

    def sleep(self, seconds: float) -> None:
        """Until the time is over or a signal arrives."""
        select.select([self._woken], [], [], seconds)

    def check(self) -> None:
        """Raises StopRequested after a signal."""
        if self.requested:
            raise StopRequested

    def wait_until(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        """Polls `condition` for at most `seconds`. Raises StopRequested if a signal arrives meanwhile."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True
