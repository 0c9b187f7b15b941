"""How many places a receiver gets, when its circuit opens, and what a call says about it. Pure."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

# A call that takes longer counts as slow.
SLOW_SECONDS = 2.0


@dataclass(slots=True)
class _Standing:
    """`share` 0: its last call was slow or had no answer, or none has come back yet."""

    share: int = 0
    began: list[float] = field(default_factory=list)


class Bulkheads:
    """Of the places of one process: each receiver's share. It is small until calls have come back quickly, and small
    again as soon as one does not. So a receiver that hangs keeps few places, and fast ones never wait for slow ones.

    Not safe between threads: the caller has a lock. `now` is monotonic, in seconds."""

    def __init__(self, places: int, *, small: int | None = None, large: int | None = None) -> None:
        self.places = places
        self.small = small or max(1, places // 8)
        # Half: a fast receiver that begins to hang has at most so many calls under way.
        self.large = large or max(1, places // 2)
        self._known: dict[Hashable, _Standing] = {}

    def known(self) -> list[Any]:
        """Those that have calls under way, or are fast."""
        return list(self._known)

    def is_quick(self, receiver: Hashable, *, now: float) -> bool:
        return self._share(receiver, now) > 0

    def room(self, receiver: Hashable, *, now: float) -> int:
        """How many more calls its own share allows; `has_room` also looks at the others."""
        return max(0, (self._share(receiver, now) or self.small) - self.under_way(receiver))

    def has_room(self, receiver: Hashable, *, now: float) -> bool:
        share, under_way = self._share(receiver, now), self.under_way(receiver)
        if share:
            return under_way < share
        # Slow and unknown receivers together leave half of the places to those that are known to be fast.
        return under_way < self.small and self._slow_ones(now) < max(1, self.places // 2)

    def under_way(self, receiver: Hashable) -> int:
        known = self._known.get(receiver)
        return len(known.began) if known else 0

    def begin(self, receiver: Hashable, *, now: float) -> None:
        self._known.setdefault(receiver, _Standing()).began.append(now)

    def end(self, receiver: Hashable, *, began: float, now: float, good: bool) -> None:
        """`good`: the receiver answered. One call more after each quick answer, back to the small share after any
        other."""
        known = self._known[receiver]
        known.began.remove(began)
        quick = good and now - began <= SLOW_SECONDS
        known.share = min(self.large, max(known.share, self.small) + 1) if quick else 0
        if not known.began and not known.share:
            del self._known[receiver]

    def withdraw(self, receiver: Hashable, *, began: float) -> None:
        """The call that began then was not made: it says nothing about its receiver."""
        known = self._known[receiver]
        known.began.remove(began)
        if not known.began and not known.share:
            del self._known[receiver]

    def _share(self, receiver: Hashable, now: float) -> int:
        """0 while it is not known to be fast."""
        known = self._known.get(receiver)
        hangs = known is not None and any(now - began > SLOW_SECONDS for began in known.began)
        return 0 if known is None or hangs else known.share

    def _slow_ones(self, now: float) -> int:
        """Places that slow and unknown receivers have, as far as they are within the small share: what a fast receiver
        still has from its larger one is not held against the others."""
        return sum(
            min(len(known.began), self.small)
            for receiver, known in self._known.items()
            if not self._share(receiver, now)
        )


class CallHealth(StrEnum):
    GOOD = "good"
    BAD = "bad"
    NOTHING = "nothing"
    """The call says nothing about the receiver: it never went out."""


def bad_weight(failure: str) -> int:
    return UNKNOWN_WEIGHT if failure in NOT_KNOWN else 1


# Words of the adapters' outcomes.
NEVER_ASKED = frozenset({"target_not_configured", "address_refused", "adapter_missing", "too_late", "adapter_raised"})
NOT_KNOWN = frozenset({"connection", "timeout"})
NO_ANSWER = NOT_KNOWN | {"no_connection", "not_sent"}


def call_health(response_metadata: Mapping[str, Any]) -> CallHealth:
    """A refusal is an answer too. 429 and 5xx: the receiver says itself that it cannot."""
    failure, status = response_metadata.get("failure"), response_metadata.get("status")
    if failure in NEVER_ASKED:
        return CallHealth.NOTHING
    overloaded = isinstance(status, int) and (status == 429 or 500 <= status < 600)
    return CallHealth.BAD if failure in NO_ANSWER or overloaded else CallHealth.GOOD


# So many bad calls in a row open a circuit.
OPENS_AFTER = 5
# A call without an answer counts for so many: it had a place for its whole time, and a person must find out what
# became of it.
UNKNOWN_WEIGHT = 3
# Seconds until the first probe; each probe that fails doubles it.
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
# A probe that is not back after this time was lost with its worker.
PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """`opened_at` None: closed. While it is open nothing is sent, but one probe at a time from `probe_at` on."""

    failures: int = 0
    opened_at: datetime | None = None
    probes: int = 0
    probe_at: datetime | None = None
    probing_until: datetime | None = None

    def after_bad(self, *, at: datetime, weight: int = 1) -> "Circuit":
        failures = self.failures + weight
        if self.opened_at is None and failures < OPENS_AFTER:
            return replace(self, failures=failures)
        # A call that began before the circuit opened is no probe, and must not make the pause longer.
        probed = self.opened_at is not None and self.probing_until is not None
        probes = self.probes + 1 if probed else self.probes
        pause = timedelta(seconds=min(FIRST_PAUSE * 2 ** min(probes, 16), LONGEST_PAUSE))
        ends = at + pause if probed or self.probe_at is None else self.probe_at
        return Circuit(failures, self.opened_at or at, probes, ends, None)

    def lets_through(self, *, at: datetime) -> bool:
        return self.opened_at is None or self.may_probe(at=at)

    def may_probe(self, *, at: datetime) -> bool:
        due = self.probe_at is None or self.probe_at <= at
        return self.opened_at is not None and due and (self.probing_until is None or self.probing_until <= at)
