"""Whose turn is it? Weighted fair hand-out between organizations. Pure."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Share:
    """What an organization is entitled to, and what it has already."""

    capacity: int
    under_way: int


class FairRound:
    """Always the one that has least for its weight. Exact arithmetic, so that ties do not depend on rounding."""

    def __init__(self, shares: Mapping[UUID, Share]) -> None:
        self._capacity = {key: share.capacity for key, share in shares.items()}
        self._has = {key: share.under_way for key, share in shares.items()}
        self._turns = [(self._finish(key), key) for key in shares]
        heapq.heapify(self._turns)

    def turn(self) -> UUID | None:
        """Takes the organization out of the round; `served` or `waits` puts it back."""
        return heapq.heappop(self._turns)[1] if self._turns else None

    def served(self, key: UUID) -> None:
        self._has[key] += 1
        self.waits(key)

    def waits(self, key: UUID) -> None:
        """It got nothing in this turn (its candidate could not be placed) and may try its next one."""
        heapq.heappush(self._turns, (self._finish(key), key))

    def _finish(self, key: UUID) -> Fraction:
        return Fraction(self._has[key] + 1, self._capacity[key])
