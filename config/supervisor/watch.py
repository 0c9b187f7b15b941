"""Keeps servers and children running: one that ends by itself is started again, after a longer delay each time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from config.supervisor.errors import StopRequested

# The delay doubles up to this. A process that fails at once would otherwise use a core and fill its log.
LONGEST_DELAY_SECONDS = 30.0
# After so long a run, an end counts as the first one again.
STEADY_AFTER_SECONDS = 60.0


class Watched(Protocol):
    """A server or a child. `start` adopts one that already runs."""

    name: str

    def alive(self) -> bool: ...
    def start(self) -> None: ...


@dataclass
class Patience:
    """How one watched process has behaved so far."""

    first_delay: float
    delay: float
    up_since: float
    due_at: float | None = None


class Watch:
    """Call `look` often. It blocks no longer than one start takes."""

    def __init__(
        self,
        *,
        watched: Sequence[Watched],
        first_delays: dict[str, float],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watched = watched
        self._say = say
        self._clock = clock
        self._patience = {
            one.name: Patience(first_delay=first_delays[one.name], delay=first_delays[one.name], up_since=clock())
            for one in watched
        }

    def look(self) -> None:
        """One round over everything that is watched."""
        for one in self._watched:
            self._look_at(one, self._patience[one.name])

    def _look_at(self, one: Watched, patience: Patience) -> None:
        now = self._clock()
        if one.alive():
            if patience.due_at is not None:
                self._came_back(one, patience)
        elif patience.due_at is None:
            if now - patience.up_since > STEADY_AFTER_SECONDS:
                patience.delay = patience.first_delay
            patience.due_at = now + patience.delay
            self._say(f"{one.name} ended unexpectedly; starting it again in {patience.delay:g} s")
        elif now >= patience.due_at:
            self._start_again(one, patience)

    def _start_again(self, one: Watched, patience: Patience) -> None:
        patience.delay = min(max(patience.delay, 0.5) * 2, LONGEST_DELAY_SECONDS)
        try:
            one.start()
        except StopRequested:
            raise
        # Any failed start is tried again later: the supervisor must not end, because it stops everything else with it.
        except Exception as error:
            patience.due_at = self._clock() + patience.delay
            self._say(f"{one.name} does not start, next try in {patience.delay:g} s: {error}")
            return
        self._came_back(one, patience)

    def _came_back(self, one: Watched, patience: Patience) -> None:
        patience.due_at = None
        patience.up_since = self._clock()
        self._say(f"{one.name} runs again")
