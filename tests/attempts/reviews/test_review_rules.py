"""The pure rules: who may decide, who is excluded and why, when the quorum is met."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.review_rules import (
    WORDS,
    Exclusion,
    Facts,
    Voice,
    authority_for,
    excluded_people,
    exclusion_of,
    quorum_of,
)

pytestmark = pytest.mark.unit

ANN, BEN, CAT, DAN = PEOPLE = [UUID(int=number) for number in range(1, 5)]
people = st.sampled_from(PEOPLE)
maybe = st.none() | people
groups = st.frozensets(people)
voices = st.lists(st.builds(Voice, voter=maybe, authority=maybe, approves=st.booleans()), max_size=6).map(tuple)
facts_ = st.builds(
    Facts,
    requesters=groups,
    holders=groups,
    delegators=st.lists(people, max_size=4, unique=True).map(tuple),
    voices=voices,
)


def facts(
    *, requesters: set[UUID] | None = None, holders: set[UUID], delegators: tuple[UUID, ...] = (), voices_: object = ()
) -> Facts:
    return Facts(frozenset(requesters or ()), frozenset(holders), delegators, tuple(voices_))


CASES = [
    ("a holder decides in their own name", facts(holders={ANN}), ANN),
    ("nobody else does", facts(holders={BEN}), Exclusion.NOT_A_REVIEWER),
    ("a delegate decides for the holder", facts(holders={BEN}, delegators=(BEN,)), BEN),
    ("own standing comes before a delegation", facts(holders={ANN, BEN}, delegators=(BEN,)), ANN),
    ("a delegation from somebody without the role is empty", facts(holders=set(), delegators=(BEN,)), "none"),
    ("who asked is out, role or not", facts(holders={ANN}, requesters={ANN}), Exclusion.OWN_REQUEST),
    ("who asked cannot send a delegate", facts(holders={BEN}, requesters={BEN}, delegators=(BEN,)), "own"),
    ("one voice each", facts(holders={ANN}, voices_=[Voice(ANN, ANN, True)]), Exclusion.ALREADY_VOTED),
    ("a delegate's vote was theirs", facts(holders={ANN}, voices_=[Voice(BEN, ANN, True)]), Exclusion.REPRESENTED),
    (
        "a delegator who voted has no second voice",
        facts(holders={BEN}, delegators=(BEN,), voices_=[Voice(BEN, BEN, True)]),
        Exclusion.DELEGATOR_VOTED,
    ),
    (
        "the next delegation counts when the first is used up",
        facts(holders={BEN, CAT}, delegators=(BEN, CAT), voices_=[Voice(BEN, BEN, True)]),
        CAT,
    ),
]
SHORT = {"none": Exclusion.NOT_A_REVIEWER, "own": Exclusion.OWN_REQUEST}


@pytest.mark.parametrize(("known", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_ann_may_decide_or_is_told_why_not(known: Facts, expected: UUID | Exclusion | str) -> None:
    assert authority_for(ANN, known) == SHORT.get(str(expected), expected)


@given(person=people, known=facts_)
def test_whoever_may_decide_did_not_ask_has_no_vote_yet_and_stands_on_a_role_that_holds(
    person: UUID, known: Facts
) -> None:
    authority = authority_for(person, known)
    if isinstance(authority, Exclusion):
        assert WORDS[authority]
        return
    signed = {who for voice in known.voices for who in (voice.voter, voice.authority)}
    assert not {person, authority} & (known.requesters | signed)
    assert authority in known.holders
    assert authority == person or authority in known.delegators


@given(person=people, known=facts_)
def test_a_vote_that_is_allowed_always_adds_exactly_one_approval_and_never_twice(person: UUID, known: Facts) -> None:
    authority = authority_for(person, known)
    if isinstance(authority, Exclusion):
        return
    before = quorum_of(known.voices, required=9, holders=known.holders, requesters=known.requesters)
    cast = (*known.voices, Voice(person, authority, True))
    after = quorum_of(cast, required=9, holders=known.holders, requesters=known.requesters)
    assert after.approvals == before.approvals + 1
    again = Facts(known.requesters, known.holders, known.delegators, cast)
    assert authority_for(person, again) is Exclusion.ALREADY_VOTED
    assert exclusion_of(authority, again) is not None


@given(votes=voices, holders=groups, requesters=groups, required=st.integers(1, 4))
def test_a_quorum_needs_as_many_different_people_and_none_who_asked(
    votes: tuple[Voice, ...], holders: frozenset[UUID], requesters: frozenset[UUID], required: int
) -> None:
    quorum = quorum_of(votes, required=required, holders=holders, requesters=requesters)
    voters = {voice.voter for voice in votes if voice.approves} - {None} - requesters
    standing = {voice.authority for voice in votes if voice.approves} & holders - requesters
    assert quorum.approvals <= min(len(voters), len(standing))
    assert quorum.met == (quorum.approvals >= required)
    assert quorum.missing == max(0, required - quorum.approvals)


@given(person=people, times=st.integers(1, 5), holders=groups)
def test_one_person_never_meets_two(person: UUID, times: int, holders: frozenset[UUID]) -> None:
    votes = [Voice(person, authority, True) for authority in PEOPLE] + [Voice(person, person, True)] * times
    assert not quorum_of(votes, required=2, holders=holders, requesters=()).met


@given(votes=voices, holders=groups, gone=people)
def test_losing_the_role_never_helps(votes: tuple[Voice, ...], holders: frozenset[UUID], gone: UUID) -> None:
    """Each approval stands on one role: without it, that one is missing, and at most the ones it kept out come in."""
    own = tuple(Voice(voice.voter, voice.voter, voice.approves) for voice in votes)
    with_role = quorum_of(own, required=1, holders=holders, requesters=())
    without = quorum_of(own, required=1, holders=holders - {gone}, requesters=())
    assert without.approvals <= with_role.approvals


@given(known=facts_)
def test_the_list_of_excluded_people_is_exactly_who_is_refused_by_name(known: Facts) -> None:
    listed = excluded_people(known)
    assert listed == {person: reason for person in PEOPLE if (reason := exclusion_of(person, known)) is not None}
    assert known.requesters <= set(listed)


def test_an_erased_voter_counts_for_nothing() -> None:
    votes = [Voice(None, None, True), Voice(BEN, BEN, True)]
    assert quorum_of(votes, required=2, holders=PEOPLE, requesters=()).approvals == 1
