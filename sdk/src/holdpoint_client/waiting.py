"""Waiting for a decision or an end, without input or output: how long to ask the server to sleep, when to stop."""

from typing import Literal

from holdpoint_client.errors import StillWaiting
from holdpoint_client.operations import LONGEST_WAIT
from holdpoint_client.results import Attempt

Until = Literal["decision", "end"]
CANCELLABLE_WAIT = 3  # seconds: how late a cancelled wait may notice
QUICK, SLOW = 0.5, 5.0  # seconds between looks when the server has no place to sleep in


class Waiting:
    def __init__(self, *, until: Until, seconds: float, now: float, cancellable: bool = False) -> None:
        self.until, self.ends_at = until, now + seconds
        self.longest = CANCELLABLE_WAIT if cancellable else LONGEST_WAIT
        self._pause = QUICK

    def left(self, now: float) -> float:
        return max(0.0, self.ends_at - now)

    def ask(self, now: float) -> int:
        """For `Prefer: wait`; 0 asks for an answer at once."""
        return min(self.longest, int(self.left(now)))

    def heard(self, attempt: Attempt, *, slept: bool, now: float, cancelled: bool = False) -> float | None:
        """None when it is over; otherwise the pause before the next look. Raises at the end of the time."""
        if attempt.ended or (self.until == "decision" and attempt.decided):
            return None
        if cancelled or self.left(now) <= 0:
            raise StillWaiting(attempt)
        pause, self._pause = (QUICK / 5, QUICK) if slept else (self._pause, min(SLOW, self._pause * 2))
        return min(pause, self.left(now))
