"""Whose turn it is for a place: weighted fair queueing by virtual time. Pure; a process keeps one queue in memory.

Each organization has a virtual time that grows with the seconds of places it has used, divided by its weight. The next
turn is for the one with the smallest. (Start-time fair queueing, Goyal, Vin and Cheng 1997; for several places at once:
SFQ(D), Jin, Chase and Kaur 2004.)
"""

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

# What a turn is expected to take before anything is known, in seconds.
FIRST_COST = 1.0
# Each turn also costs our own work, however quickly a receiver answers.
LEAST_COST = 0.02
# How much of a new measurement goes into what the next turn is expected to take.
LEARNING = 0.3
# Seconds, for a weight of one. Who used many places while nobody else wanted them must not wait for that for long.
LONGEST_DEBT = 10.0


@dataclass(frozen=True, slots=True)
class Turn(Generic[Key]):
    """A place that was given: to whom, and what was charged for it in advance."""

    key: Key
    weight: int
    charged: float


class FairQueue(Generic[Key]):
    """Not safe between threads: the caller has a lock."""

    def __init__(self) -> None:
        self._virtual = 0.0
        self._finish: dict[Key, float] = {}
        self._cost: dict[Key, float] = {}
        self._under_way: dict[Key, int] = {}

    def choose(self, waiting: Mapping[Key, int]) -> Key:
        """Of those that wait, with their weights. Ties: who has the fewest places for its weight."""
        return min(
            waiting,
            key=lambda key: (self._start(key), self._under_way.get(key, 0) / waiting[key], str(key)),
        )

    def begin(self, key: Key, weight: int) -> Turn[Key]:
        """Gives it a place and charges what its turns usually take; `end` corrects that."""
        start, charged = self._start(key), self._cost.get(key, FIRST_COST)
        # Who comes later begins here: nobody saves up turns by not wanting any.
        self._virtual = max(self._virtual, start)
        self._finish[key] = start + charged / weight
        self._under_way[key] = self._under_way.get(key, 0) + 1
        return Turn(key, weight, charged)

    def end(self, turn: Turn[Key], *, seconds: float) -> None:
        key, seconds = turn.key, max(seconds, LEAST_COST)
        self._cost[key] = turn.charged + LEARNING * (seconds - turn.charged)
        corrected = self._finish.get(key, self._virtual) + (seconds - turn.charged) / turn.weight
        self._finish[key] = min(corrected, self._virtual + LONGEST_DEBT / turn.weight)
        self._leave(key)

    def cancel(self, turn: Turn[Key]) -> None:
        """The place was not used."""
        self._finish[turn.key] = self._finish.get(turn.key, self._virtual) - turn.charged / turn.weight
        self._leave(turn.key)

    def _start(self, key: Key) -> float:
        return max(self._virtual, self._finish.get(key, 0.0))

    def _leave(self, key: Key) -> None:
        """What is known about an organization is forgotten when it makes no difference any more."""
        self._under_way[key] -= 1
        if not self._under_way[key]:
            del self._under_way[key]
            if self._finish[key] <= self._virtual:
                del self._finish[key]
                self._cost.pop(key, None)


def in_turns(lines: Mapping[Key, Iterable[Item]], weights: Mapping[Key, int]) -> Iterator[Item]:
    """All items, each line's in its order, the lines in turns by weight: for work whose pieces cost about the same."""
    found = {key: iter(line) for key, line in lines.items()}
    # Exact fractions: with floats, ties would depend on rounding.
    turns = [(Fraction(1, weights[key]), str(key), key) for key in found]
    heapq.heapify(turns)
    while turns:
        turn, name, key = heapq.heappop(turns)
        for item in found[key]:
            yield item
            heapq.heappush(turns, (turn + Fraction(1, weights[key]), name, key))
            break
