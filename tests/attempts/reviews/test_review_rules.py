"""The pure rules: who may decide, who is excluded and why."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.reviews.rules import (
    WORDS,
    Delegated,
    Exclusion,
    Facts,
    Mandate,
    QuorumBucket,
    Voice,
    excluded_people,
    exclusion_of,
    helps,
    mandate_for,
    quorum_for,
)

pytestmark = pytest.mark.unit

ANN, BEN, CAT, DAN = PEOPLE = [UUID(int=number) for number in range(1, 5)]
TIERS = ["clinicians", "privacy"]
people = st.sampled_from(PEOPLE)
maybe = st.none() | people
groups = st.frozensets(people)
tiers = st.sampled_from(TIERS)
voices = st.lists(
    st.builds(Voice, voter=maybe, authority=maybe, approves=st.booleans(), tier=st.just("") | tiers), max_size=6
).map(tuple)
facts_ = st.builds(
    Facts,
    buckets=st.lists(st.builds(QuorumBucket, tier=tiers, required=st.integers(1, 3)), min_size=1, max_size=3).map(
        tuple
    ),
    requesters=groups,
    holders=st.dictionaries(tiers, groups),
    delegations=st.lists(st.builds(Delegated, tier=tiers, by=people, to=people), max_size=4, unique=True).map(tuple),
    voices=voices,
    authorizers=st.frozensets(people, max_size=1),
)


def facts(*, holders: set[UUID], privacy: set[UUID] | None = None, lent: tuple[UUID, ...] = (), **more: Any) -> Facts:
    """Two clinicians must sign, and, where `privacy` is given, one person of that tier too."""
    buckets = [QuorumBucket("clinicians", 2), *([QuorumBucket("privacy", 1)] if privacy is not None else [])]
    return Facts(
        buckets=tuple(buckets),
        requesters=frozenset(more.get("requesters", ())),
        holders={"clinicians": frozenset(holders), "privacy": frozenset(privacy or ())},
        delegations=tuple(Delegated("clinicians", row, ANN) for row in lent),
        voices=tuple(more.get("voices", ())),
        authorizers=frozenset(more.get("authorizers", ())),
    )


def own(*signers: UUID) -> list[Voice]:
    return [Voice(person, person, True) for person in signers]


CASES: list[tuple[str, Facts, Mandate | Exclusion]] = [
    ("a holder decides in their own name", facts(holders={ANN}), Mandate(ANN)),
    ("nobody else does", facts(holders={BEN}), Exclusion.NOT_A_REVIEWER),
    ("a delegation gives no vote", facts(holders={BEN}, lent=(BEN,)), Exclusion.NOT_A_REVIEWER),
    ("who stands in decides in their own name", facts(holders={ANN, BEN}, lent=(BEN,)), Mandate(ANN)),
    ("also if the other has voted", facts(holders={ANN, BEN}, lent=(BEN,), voices=own(BEN)), Mandate(ANN)),
    ("who asked is out, role or not", facts(holders={ANN}, requesters={ANN}), Exclusion.OWN_REQUEST),
    (
        "who asked cannot send a delegate",
        facts(holders={ANN, BEN}, requesters={BEN}, lent=(BEN,)),
        Exclusion.OWN_REQUEST,
    ),
    ("who authorized it is out", facts(holders={ANN}, authorizers={ANN}), Exclusion.AUTHORIZED_IT),
    (
        "who authorized it cannot send a delegate",
        facts(holders={ANN, BEN}, authorizers={BEN}, lent=(BEN,)),
        Exclusion.AUTHORIZED_IT,
    ),
    ("one voice each", facts(holders={ANN}, voices=own(ANN)), Exclusion.ALREADY_VOTED),
    (
        "an older vote in their name was theirs",
        facts(holders={ANN}, voices=[Voice(BEN, ANN, True)]),
        Exclusion.REPRESENTED,
    ),
    (
        "a member of a tier that is complete has a voice, which may reject",
        facts(holders={ANN, BEN, CAT}, privacy={DAN}, voices=own(BEN, CAT)),
        Mandate(ANN),
    ),
]


@pytest.mark.parametrize(("known", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_ann_may_decide_or_is_told_why_not(known: Facts, expected: Mandate | Exclusion) -> None:
    assert mandate_for(ANN, known) == expected


def test_an_approval_of_a_complete_tier_helps_nothing_until_a_signer_loses_the_role() -> None:
    known = facts(holders={ANN, BEN, CAT}, privacy={DAN}, voices=own(BEN, CAT))
    assert not helps(ANN, Mandate(ANN), known)
    assert helps(DAN, Mandate(DAN), known)
    lost = replace(known, holders={"clinicians": frozenset({ANN, BEN}), "privacy": frozenset({DAN})})
    assert helps(ANN, Mandate(ANN), lost)


def test_whoever_signs_after_a_lost_role_came_back_releases_it() -> None:
    """All places are taken, but nobody's vote has ended the review: the next one must."""
    assert helps(CAT, Mandate(CAT), facts(holders={ANN, BEN, CAT}, voices=own(ANN, BEN)))


@given(person=people, known=facts_)
def test_whoever_may_decide_set_nothing_in_motion_has_no_vote_yet_and_stands_on_a_role_that_holds(
    person: UUID, known: Facts
) -> None:
    mandate = mandate_for(person, known)
    if isinstance(mandate, Exclusion):
        assert WORDS[mandate]
        return
    signed = {who for voice in known.voices for who in (voice.voter, voice.authority)}
    assert not {person, mandate.authority} & (known.barred | signed)
    assert mandate.authority == person
    assert person in known.any_holder
    assert not {row.by for row in known.delegations if row.to == person} & known.barred


@given(person=people, known=facts_)
def test_a_vote_that_helps_adds_exactly_one_approval_and_nobody_has_two(person: UUID, known: Facts) -> None:
    mandate = mandate_for(person, known)
    if isinstance(mandate, Exclusion):
        return
    before = quorum_for(known)
    after = quorum_for(known, voice := Voice(person, mandate.authority, True))
    assert after.approvals - before.approvals in {0, 1}
    assert helps(person, mandate, known) == (before.met or after.approvals == before.approvals + 1)
    again = replace(known, voices=(*known.voices, voice))
    assert mandate_for(person, again) is Exclusion.ALREADY_VOTED
    assert exclusion_of(mandate.authority, again) is not None


@given(person=people, known=facts_)
def test_an_own_standing_in_an_open_tier_always_helps(person: UUID, known: Facts) -> None:
    mine = {tier for tier, holders in known.holders.items() if person in holders}
    if exclusion_of(person, known) is None and mine & set(quorum_for(known).open_tiers):
        assert helps(person, Mandate(person), known)


@given(known=facts_)
def test_the_list_of_excluded_people_is_exactly_who_is_refused_by_name(known: Facts) -> None:
    listed = excluded_people(known)
    assert listed == {person: reason for person in PEOPLE if (reason := exclusion_of(person, known)) is not None}
    assert known.barred <= set(listed)
