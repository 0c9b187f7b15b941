"""Who may decide on a hold, who is excluded and why, and when the quorum is met. Pure: facts in, an answer out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Exclusion(StrEnum):
    """Why a person has no voice in a review."""

    NOT_A_REVIEWER = "not_a_reviewer"
    OWN_REQUEST = "own_request"
    ALREADY_VOTED = "already_voted"
    REPRESENTED = "represented"
    DELEGATOR_VOTED = "delegator_voted"


WORDS: dict[Exclusion, str] = {
    Exclusion.NOT_A_REVIEWER: "has neither the role of this tier nor a delegation from somebody who has it",
    Exclusion.OWN_REQUEST: "is behind the service account that asked, or would decide for the person who is",
    Exclusion.ALREADY_VOTED: "has voted on this review",
    Exclusion.REPRESENTED: "has voted on this review through a delegate",
    Exclusion.DELEGATOR_VOTED: "would decide for somebody who has a vote on this review already",
}


@dataclass(frozen=True, slots=True)
class Voice:
    """A vote: who gave it, and by whose standing (their own, or that of whoever delegated to them).

    None stands for a person whose reference was erased: the vote stays, but nobody stands behind it any more.
    """

    voter: UUID | None
    authority: UUID | None
    approves: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at the moment of the decision."""

    requesters: frozenset[UUID]
    holders: frozenset[UUID]
    """Who of the people concerned has the tier's role right now."""
    delegators: tuple[UUID, ...]
    """Who delegates to the asking person right now, oldest delegation first."""
    voices: tuple[Voice, ...]


@dataclass(frozen=True, slots=True)
class Quorum:
    required: int
    approvals: int

    @property
    def missing(self) -> int:
        return max(0, self.required - self.approvals)

    @property
    def met(self) -> bool:
        return self.missing == 0


def authority_for(person: UUID, facts: Facts) -> UUID | Exclusion:
    """By whose standing the person may decide: their own first, then the oldest delegation that may be used."""
    excluded = exclusion_of(person, facts)
    if excluded is not None:
        return excluded
    if person in facts.holders:
        return person
    standing = [delegator for delegator in facts.delegators if delegator in facts.holders]
    reasons = [exclusion_of(delegator, facts) for delegator in standing]
    for delegator, reason in zip(standing, reasons, strict=True):
        if reason is None:
            return delegator
    if Exclusion.OWN_REQUEST in reasons:
        return Exclusion.OWN_REQUEST
    return Exclusion.DELEGATOR_VOTED if reasons else Exclusion.NOT_A_REVIEWER


def exclusion_of(person: UUID, facts: Facts) -> Exclusion | None:
    """Whether this person is out, whatever their role."""
    if person in facts.requesters:
        return Exclusion.OWN_REQUEST
    if any(person == voice.voter for voice in facts.voices):
        return Exclusion.ALREADY_VOTED
    if any(person == voice.authority for voice in facts.voices):
        return Exclusion.REPRESENTED
    return None


def excluded_people(facts: Facts) -> dict[UUID, Exclusion]:
    """Everybody who is out on this review by name: who asked, and who has a vote already."""
    signed = {person for voice in facts.voices for person in (voice.voter, voice.authority) if person is not None}
    reasons = {person: exclusion_of(person, facts) for person in sorted(facts.requesters | signed)}
    return {person: reason for person, reason in reasons.items() if reason is not None}


def quorum_of(voices: Sequence[Voice], *, required: int, holders: Iterable[UUID], requesters: Iterable[UUID]) -> Quorum:
    """Approvals of different people, none of whom asked, each by a standing that still holds and is used once."""
    standing, asked = frozenset(holders), frozenset(requesters)
    seen: set[UUID] = set()
    approvals = 0
    for voice in voices:
        if not voice.approves or voice.voter is None or voice.authority not in standing:
            continue
        people = {voice.voter, voice.authority}
        if people & (seen | asked):
            continue
        seen |= people
        approvals += 1
    return Quorum(required=required, approvals=approvals)
