"""May a failed execution be tried again without a person, and when? Pure: everything it depends on is passed in."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from typing import Any
from uuid import UUID

SAFE_EFFECTS = frozenset({"none", "idempotent"})


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """`due_at` is empty when nothing may be tried again; `why` then names the first rule that forbids it."""

    due_at: datetime | None
    why: str


def retry_plan(
    *,
    document: Mapping[str, Any],
    effect: str,
    retryable: bool,
    tries: int,
    first_at: datetime,
    at: datetime,
    attempt_id: UUID,
) -> RetryPlan:
    """`document` is the contract's retry_and_replay; `tries` are the executions so far; `first_at` is the first one."""
    if effect not in SAFE_EFFECTS:
        return RetryPlan(None, "effect_is_once")
    if document["automatic_retries"] != "when_safe":
        return RetryPlan(None, "contract_forbids")
    if not retryable:
        return RetryPlan(None, "not_retryable")
    if tries >= document["max_attempts"]:
        return RetryPlan(None, "tries_used_up")
    wait = execution_backoff(document["backoff_seconds"], tries)
    last = first_at + timedelta(seconds=document["window_seconds"])
    if at + wait > last:
        return RetryPlan(None, "window_passed")
    spread = wait * (document["jitter_fraction"] * jitter(attempt_id, tries))
    return RetryPlan(min(at + wait + spread, last), "retry")


def execution_backoff(seconds: list[int], tries: int) -> timedelta:
    """The wait after the first, second, … execution; the last value repeats."""
    return timedelta(seconds=seconds[min(max(tries, 1), len(seconds)) - 1])


def jitter(attempt_id: UUID, tries: int) -> float:
    """From 0 up to 1, spread over attempts and yet the same whenever it is computed again."""
    digest = sha256(f"{attempt_id}:{tries}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


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
