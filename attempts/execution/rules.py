"""Automatic retries, whose turn it is for a free slot, and what a report may contain. Pure."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from typing import Any
from uuid import UUID

from governance.boundary.rules import BoundaryFinding, BoundaryPolicy, inspect_metadata, inspect_reference

SAFE_EFFECTS = frozenset({"none", "idempotent"})
LEASE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """`due_at` is None if there is no automatic retry; `why` then names the first rule that forbids it."""

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
    """`document` is the contract's retry_and_replay, `tries` the number of tries so far, `first_at` the first one."""
    # The effect comes first: no contract can allow an automatic repetition of something that must happen once.
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
    # Jitter, so that many attempts that failed together do not all come back at the same moment.
    spread = wait * (document["jitter_fraction"] * jitter(attempt_id, tries))
    return RetryPlan(min(at + wait + spread, last), "retry")


PICK_UP = timedelta(seconds=15)  # a try that was due in time is not refused because a worker came a little later


def window_is_over(*, first_at: datetime, window: timedelta, at: datetime) -> bool:
    """Whether a further try comes too late now, whatever was planned when the last one failed."""
    return at > first_at + window + PICK_UP


def execution_backoff(seconds: list[int], tries: int) -> timedelta:
    """The wait after the first, second, … try; the last value repeats."""
    return timedelta(seconds=seconds[min(max(tries, 1), len(seconds)) - 1])


def jitter(attempt_id: UUID, tries: int) -> float:
    """A number from 0 up to 1, different for each attempt and try."""
    # From a hash instead of a random number: the same plan comes out whenever it is computed again.
    digest = sha256(f"{attempt_id}:{tries}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@dataclass(frozen=True, slots=True)
class Share:
    """The weight of an organization, and how many slots it already has."""

    capacity: int
    under_way: int


class FairRound:
    """Gives turns to organizations: the next turn is for the one with the fewest slots for its weight."""

    def __init__(self, shares: Mapping[UUID, Share]) -> None:
        self._capacity = {key: share.capacity for key, share in shares.items()}
        self._has = {key: share.under_way for key, share in shares.items()}
        self._turns = [(self._finish(key), key) for key in shares]
        heapq.heapify(self._turns)

    def turn(self) -> UUID | None:
        """The organization whose turn it is. It leaves the round until `served` or `waits` puts it back."""
        return heapq.heappop(self._turns)[1] if self._turns else None

    def served(self, key: UUID) -> None:
        self._has[key] += 1
        self.waits(key)

    def waits(self, key: UUID) -> None:
        """Puts it back without a slot: this candidate found none, the next one may."""
        heapq.heappush(self._turns, (self._finish(key), key))

    def _finish(self, key: UUID) -> Fraction:
        # Exact fractions: with floats, ties would depend on rounding.
        return Fraction(self._has[key] + 1, self._capacity[key])


# No schema of allowed keys: each executor reports something else. Size, depth, forbidden keys and all detectors apply.
POLICY = BoundaryPolicy(schema=None, max_bytes=4096, max_depth=3)


def outside_boundary(response_metadata: dict[str, Any]) -> tuple[BoundaryFinding, ...]:
    return inspect_metadata(response_metadata, policy=POLICY)


def report_findings(
    *, response_metadata: dict[str, Any], cost: dict[str, Any] | None = None, reversal_hint: str = ""
) -> list[BoundaryFinding]:
    """All findings in a report, with their pointers."""
    found = [
        BoundaryFinding(f"/response_metadata{_below(one)}", one.rule) for one in outside_boundary(response_metadata)
    ]
    for name in ("provider", "model"):
        if cost and cost.get(name):
            found += inspect_reference(cost[name], pointer=f"/cost/{name}")
    if reversal_hint:
        found += inspect_reference(reversal_hint, pointer="/reversal_hint")
    return found


def _below(finding: BoundaryFinding) -> str:
    """The pointer without `/metadata`: in a report the object has another name."""
    return finding.pointer.removeprefix("/metadata")
