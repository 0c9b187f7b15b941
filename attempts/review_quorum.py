"""When a quorum is met: so many different people of each tier, nobody counted twice. Pure.

A person who has several of the tiers fills one place only, whichever leaves the most for the others: a maximum matching
of voices and places.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Bucket:
    """So many different people of one tier."""

    tier: str
    required: int


@dataclass(frozen=True, slots=True)
class Voice:
    """A vote: who gave it, and by whose standing (their own, or that of whoever delegated to them).

    None stands for a person whose reference was erased: the vote stays, but nobody stands behind it any more. `tier` is
    the one that was delegated; one's own standing counts in every tier one has.
    """

    voter: UUID | None
    authority: UUID | None
    approves: bool
    tier: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """`open`: one more person of this tier would help, if need be by moving somebody else to another place."""

    tier: str
    required: int
    approvals: int
    open: bool

    @property
    def missing(self) -> int:
        return self.required - self.approvals


@dataclass(frozen=True, slots=True)
class Quorum:
    buckets: tuple[Progress, ...]

    @property
    def required(self) -> int:
        return sum(bucket.required for bucket in self.buckets)

    @property
    def approvals(self) -> int:
        return sum(bucket.approvals for bucket in self.buckets)

    @property
    def missing(self) -> int:
        return self.required - self.approvals

    @property
    def met(self) -> bool:
        return self.missing == 0

    @property
    def open_tiers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(bucket.tier for bucket in self.buckets if bucket.open))


def quorum_of(
    voices: Sequence[Voice],
    *,
    buckets: Sequence[Bucket],
    holders: Mapping[str, Collection[UUID]],
    barred: Iterable[UUID] = (),
    acting: Collection[UUID] = (),
) -> Quorum:
    """Approvals of different people, none of whom is barred, each by a standing that still holds and is used once.
    Who decided for somebody else must still be one who may act."""
    places = [index for index, bucket in enumerate(buckets) for _ in range(bucket.required)]
    seating = _Seating(places)
    seen = set(barred)
    for voice in voices:
        fitting = _fitting(voice, buckets, holders, acting)
        people = {voice.voter, voice.authority}
        if not fitting or people & seen:
            continue
        seen |= {person for person in people if person is not None}
        seating.take(fitting)
    return Quorum(
        tuple(
            Progress(bucket.tier, bucket.required, seating.taken_in(index), open=seating.could_take({index}))
            for index, bucket in enumerate(buckets)
        )
    )


def _fitting(
    voice: Voice, buckets: Sequence[Bucket], holders: Mapping[str, Collection[UUID]], acting: Collection[UUID]
) -> set[int]:
    """In which buckets the voice may count, if in any."""
    if not voice.approves or voice.voter is None or voice.authority is None:
        return set()
    if voice.voter != voice.authority and voice.voter not in acting:
        return set()
    return {
        index
        for index, bucket in enumerate(buckets)
        if voice.tier in ("", bucket.tier) and voice.authority in holders.get(bucket.tier, ())
    }


class _Seating:
    """A maximum matching that grows by augmenting paths: who sits moves over when that makes room."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places
        self._guests: list[set[int]] = []
        self._seat: dict[int, int] = {}

    def take(self, fitting: set[int]) -> None:
        self._guests.append(fitting)
        self._place(len(self._guests) - 1, self._seat, set())

    def could_take(self, fitting: set[int]) -> bool:
        self._guests.append(fitting)
        found = self._place(len(self._guests) - 1, dict(self._seat), set())
        self._guests.pop()
        return found

    def taken_in(self, bucket: int) -> int:
        return sum(1 for place in self._seat if self._places[place] == bucket)

    def _place(self, guest: int, seat: dict[int, int], tried: set[int]) -> bool:
        for place, bucket in enumerate(self._places):
            if bucket not in self._guests[guest] or place in tried:
                continue
            tried.add(place)
            if place not in seat or self._place(seat[place], seat, tried):
                seat[place] = guest
                return True
        return False
