"""Who may vote in a review, who is excluded and why, when the quorum is met, and what is asked in words. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from governance.boundary.rules import ShownFact


@dataclass(frozen=True, slots=True)
class QuorumBucket:
    """How many different people of one tier must approve."""

    tier: str
    required: int


@dataclass(frozen=True, slots=True)
class Voice:
    """A vote: who gave it, and whose role counts.

    People vote in their own name. Only votes of earlier versions name another `authority`, who had delegated `tier`.
    None: the person's commitment was erased. The vote stays, but counts no more.
    """

    voter: UUID | None
    authority: UUID | None
    approves: bool
    tier: str = ""
    outcome: str = ""
    """Of a task: the one that the vote chose."""


@dataclass(frozen=True, slots=True)
class BucketProgress:
    """`open`: one more approval of this tier would help, if need be by counting another one in another tier."""

    tier: str
    required: int
    approvals: int
    open: bool

    @property
    def missing(self) -> int:
        return self.required - self.approvals


@dataclass(frozen=True, slots=True)
class Quorum:
    buckets: tuple[BucketProgress, ...]

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
    buckets: Sequence[QuorumBucket],
    holders: Mapping[str, Collection[UUID]],
    barred: Iterable[UUID] = (),
) -> Quorum:
    """Counts approvals of different people who are not barred, each by a role that they still have, used once. A person
    who voted for somebody else must have the role too."""
    # A maximum matching of voters and seats. Counting per tier would let one person with two roles fill two seats;
    # first come, first served would make the result depend on the order of the votes.
    places = [index for index, bucket in enumerate(buckets) for _ in range(bucket.required)]
    seating = _Seating(places)
    seen = set(barred)
    for voice in voices:
        fitting = _fitting(voice, buckets, holders)
        people = {voice.voter, voice.authority}
        if not fitting or people & seen:
            continue
        seen |= {person for person in people if person is not None}
        seating.take(fitting)
    return Quorum(
        tuple(
            BucketProgress(bucket.tier, bucket.required, seating.taken_in(index), open=seating.could_take({index}))
            for index, bucket in enumerate(buckets)
        )
    )


def _fitting(voice: Voice, buckets: Sequence[QuorumBucket], holders: Mapping[str, Collection[UUID]]) -> set[int]:
    """The buckets in which the vote may count."""
    if not voice.approves or voice.voter is None or voice.authority is None:
        return set()
    people = {voice.voter, voice.authority}
    return {
        index
        for index, bucket in enumerate(buckets)
        if voice.tier in ("", bucket.tier) and people <= set(holders.get(bucket.tier, ()))
    }


class _Seating:
    """A maximum matching of votes (guests) and seats, grown by augmenting paths: a guest moves if that frees a seat."""

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


class Exclusion(StrEnum):
    """Why a person may not vote in a review."""

    NOT_A_REVIEWER = "not_a_reviewer"
    OWN_REQUEST = "own_request"
    AUTHORIZED_IT = "authorized_it"
    ALREADY_VOTED = "already_voted"
    REPRESENTED = "represented"
    ASSIGNED_ELSEWHERE = "assigned_elsewhere"


WORDS: dict[Exclusion, str] = {
    Exclusion.NOT_A_REVIEWER: "does not have the role of this tier",
    Exclusion.OWN_REQUEST: "is behind the service account that asked, or stands in for the person who is",
    Exclusion.AUTHORIZED_IT: "authorized this attempt out of quarantine, or stands in for the person who did",
    Exclusion.ALREADY_VOTED: "has voted on this review",
    Exclusion.REPRESENTED: "has voted on this review through a delegate",
    Exclusion.ASSIGNED_ELSEWHERE: "is not the person whom the workflow assigned it to",
}


@dataclass(frozen=True, slots=True)
class Delegated:
    """A delegation of one of the review's tiers that is in force: `to` stands in for `by`."""

    tier: str
    by: UUID
    to: UUID
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the rules need to know, at the moment of a vote."""

    buckets: tuple[QuorumBucket, ...]
    requesters: frozenset[UUID]
    holders: Mapping[str, frozenset[UUID]]
    """Who has the role of which tier now, among the people concerned."""
    delegations: tuple[Delegated, ...] = ()
    """In force now: those to the person, and those from people who are barred."""
    voices: tuple[Voice, ...] = ()
    authorizers: frozenset[UUID] = frozenset()
    """Who authorized the attempt out of quarantine."""
    assigned: UUID | None = None
    """The one person whom a workflow assigned the task to, if it did."""

    @property
    def barred(self) -> frozenset[UUID]:
        """Nobody votes on what they asked for or authorized themselves."""
        return self.requesters | self.authorizers

    @property
    def any_holder(self) -> frozenset[UUID]:
        """Everybody with a role in one of the tiers."""
        return frozenset().union(*(self.holders.get(bucket.tier, frozenset()) for bucket in self.buckets))


@dataclass(frozen=True, slots=True)
class Mandate:
    """Whose role counts for a person's vote: their own. A delegation gives no vote."""

    authority: UUID


def quorum_for(facts: Facts, *more: Voice) -> Quorum:
    """Of a task: of the outcome that most people chose so far."""
    outcomes = {voice.outcome for voice in (*facts.voices, *more) if voice.outcome}
    found = [quorum_of_outcome(facts, outcome, *more) for outcome in sorted(outcomes or {""})]
    return max(found, key=lambda quorum: quorum.approvals)


def quorum_of_outcome(facts: Facts, outcome: str, *more: Voice) -> Quorum:
    """How many different people chose this outcome of a task. What others chose does not count for it. Every other
    review has the outcome "" only."""
    return quorum_of(
        [voice for voice in (*facts.voices, *more) if voice.outcome == outcome],
        buckets=facts.buckets,
        holders=facts.holders,
        barred=facts.barred,
    )


def helps(person: UUID, mandate: Mandate, facts: Facts) -> bool:
    """Whether an approval would count: it fills a seat that is free, or that can be freed by moving others."""
    quorum = quorum_for(facts)
    voice = Voice(person, mandate.authority, True)
    return quorum.met or quorum_for(facts, voice).approvals > quorum.approvals


def mandate_for(person: UUID, facts: Facts) -> Mandate | Exclusion:
    """Whether the person's own role counts. Standing in for others adds nothing to it, and takes away what concerns
    them: nobody sends a delegate to decide on what they asked for themselves."""
    excluded = exclusion_of(person, facts)
    if excluded is not None:
        return excluded
    return Mandate(person) if person in facts.any_holder else Exclusion.NOT_A_REVIEWER


def exclusion_of(person: UUID, facts: Facts) -> Exclusion | None:
    """Why this person may not vote whatever their role, or None."""
    if person in facts.requesters:
        return Exclusion.OWN_REQUEST
    if person in facts.authorizers:
        return Exclusion.AUTHORIZED_IT
    if any(person == voice.voter for voice in facts.voices):
        return Exclusion.ALREADY_VOTED
    if any(person == voice.authority for voice in facts.voices):
        return Exclusion.REPRESENTED
    represented = {row.by for row in facts.delegations if row.to == person}
    found = (
        (represented & facts.requesters, Exclusion.OWN_REQUEST),
        (represented & facts.authorizers, Exclusion.AUTHORIZED_IT),
        (facts.assigned not in (None, person), Exclusion.ASSIGNED_ELSEWHERE),
    )
    return next((reason for applies, reason in found if applies), None)


def excluded_people(facts: Facts) -> dict[UUID, Exclusion]:
    """Everybody who is excluded from this review: who asked for or authorized it, who stands in for one of them, and
    who has voted."""
    signed = {person for voice in facts.voices for person in (voice.voter, voice.authority) if person is not None}
    delegates = {row.to for row in facts.delegations if row.by in facts.barred}
    reasons = {person: exclusion_of(person, facts) for person in sorted(facts.barred | signed | delegates)}
    return {person: reason for person, reason in reasons.items() if reason is not None}


@dataclass(frozen=True, slots=True)
class AskedAction:
    """What a held attempt asks for: the same on the web card, in the API, in a chat and in a mail."""

    connector: str
    operation: str
    target_ref: str
    fields: tuple[str, ...]
    effect: str
    risk_tier: str
    payload_ref: str
    payload_sha256: str
    reversibility: str
    facts: tuple[ShownFact, ...]
    metadata: Mapping[str, Any]
    """What is stated besides the facts. It stays on the page: only what a contract declares for people leaves it."""
    why: str
    """The rule's own reason, if its author gave one, and what the evaluator says."""
    rule_id: str
    policy_version: int | None


def asked_lines(asked: AskedAction) -> list[tuple[str, str]]:
    """Label and text of each line of a message."""
    rule = f"{asked.rule_id} of policy version {asked.policy_version}" if asked.policy_version else asked.rule_id
    lines = [
        ("Operation", f"{asked.operation} through {asked.connector}"),
        ("Target", asked.target_ref or "none"),
        *((fact.label, fact.text) for fact in asked.facts),
        ("Fields written", ", ".join(asked.fields) or "none named"),
        ("Payload", f"sha256 {asked.payload_sha256}" if asked.payload_sha256 else "no hash given"),
        ("How to undo", asked.reversibility),
        ("Why it is held", asked.why),
        ("Rule", rule),
    ]
    return [(label, text) for label, text in lines if text]
