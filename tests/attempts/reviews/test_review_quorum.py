"""The quorum: so many different people of each tier; one person fills one place, the one that leaves most to others."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.reviews.rules import Quorum, QuorumBucket, Voice, quorum_of

pytestmark = pytest.mark.unit

ANN, BEN, CAT, DAN, EVE = PEOPLE = [UUID(int=number) for number in range(1, 6)]
TIERS = ["clinicians", "privacy", "safety"]
people = st.sampled_from(PEOPLE)
maybe = st.none() | people
groups = st.frozensets(people)
tiers = st.sampled_from(TIERS)
holders_ = st.fixed_dictionaries(dict.fromkeys(TIERS, groups))
voices = st.lists(
    st.builds(Voice, voter=maybe, authority=maybe, approves=st.booleans(), tier=st.just("") | tiers), max_size=6
)
signers = st.lists(people, unique=True, max_size=5)
buckets_ = st.lists(st.builds(QuorumBucket, tier=tiers, required=st.integers(1, 2)), min_size=1, max_size=3)
Holders = Mapping[str, frozenset[UUID]]


def own(people: Sequence[UUID]) -> list[Voice]:
    return [Voice(person, person, True) for person in people]


def count(quorum: Quorum) -> list[tuple[str, int, int]]:
    return [(bucket.tier, bucket.approvals, bucket.required) for bucket in quorum.buckets]


def seats(buckets: Sequence[QuorumBucket]) -> list[str]:
    return [bucket.tier for bucket in buckets for _ in range(bucket.required)]


def by_trying_everything(people: Sequence[UUID], buckets: Sequence[QuorumBucket], holders: Holders) -> int:
    """The most that can be seated, found by trying every order of people against every place."""
    places = seats(buckets)
    rows = [*people, *([None] * len(places))]
    best = 0
    for order in set(permutations(rows, len(places))):
        seated = zip(order, places, strict=True)
        best = max(best, sum(1 for person, tier in seated if person is not None and person in holders[tier]))
    return best


TWO_AND_ONE = [QuorumBucket("clinicians", 2), QuorumBucket("privacy", 1)]


def test_two_clinicians_and_one_of_privacy_are_three_different_people() -> None:
    holders = {"clinicians": frozenset({ANN, BEN, CAT}), "privacy": frozenset({CAT, DAN})}
    quorum = quorum_of(own([ANN, CAT]), buckets=TWO_AND_ONE, holders=holders)
    assert (quorum.met, quorum.approvals, quorum.required) == (False, 2, 3)
    assert quorum_of(own([ANN, BEN, DAN]), buckets=TWO_AND_ONE, holders=holders).met
    assert quorum_of(own([ANN, CAT, BEN]), buckets=TWO_AND_ONE, holders=holders).met
    assert quorum_of(own([CAT, DAN, ANN]), buckets=TWO_AND_ONE, holders=holders).met


def test_who_has_both_roles_moves_over_when_that_makes_room() -> None:
    """Cat sat with the clinicians; Ann and Ben are clinicians only, so Cat counts for privacy in the end."""
    holders = {"clinicians": frozenset({ANN, BEN, CAT}), "privacy": frozenset({CAT})}
    first = quorum_of(own([CAT, ANN]), buckets=TWO_AND_ONE, holders=holders)
    assert count(first) == [("clinicians", 2, 2), ("privacy", 0, 1)]
    assert first.open_tiers == ("clinicians", "privacy")
    last = quorum_of(own([CAT, ANN, BEN]), buckets=TWO_AND_ONE, holders=holders)
    assert (count(last), last.open_tiers) == ([("clinicians", 2, 2), ("privacy", 1, 1)], ())


def test_a_tier_whose_places_are_taken_by_its_own_is_not_open() -> None:
    holders = {"clinicians": frozenset({ANN, BEN, CAT}), "privacy": frozenset({DAN})}
    quorum = quorum_of(own([ANN, BEN]), buckets=TWO_AND_ONE, holders=holders)
    assert quorum.open_tiers == ("privacy",)


def test_a_delegated_voice_counts_in_the_delegated_tier_only() -> None:
    """A vote of an earlier version."""
    holders = {"clinicians": frozenset({ANN, CAT}), "privacy": frozenset({ANN, CAT})}
    lent = [Voice(ANN, CAT, True, "privacy")]
    quorum = quorum_of(lent, buckets=[QuorumBucket("clinicians", 1), QuorumBucket("privacy", 1)], holders=holders)
    assert count(quorum) == [("clinicians", 0, 1), ("privacy", 1, 1)]
    assert quorum_of(lent, buckets=[QuorumBucket("clinicians", 1)], holders=holders).approvals == 0


@pytest.mark.parametrize(("holders", "met"), [({ANN, CAT}, True), ({CAT}, False), ({ANN}, False)])
def test_a_delegated_voice_counts_only_if_both_have_the_tier(holders: set[UUID], met: bool) -> None:
    lent = [Voice(ANN, CAT, True, "clinicians")]
    asked = [QuorumBucket("clinicians", 1)]
    assert quorum_of(lent, buckets=asked, holders={"clinicians": frozenset(holders)}).met is met


def test_an_erased_voter_counts_for_nothing() -> None:
    votes = [Voice(None, None, True), *own([BEN])]
    quorum = quorum_of(votes, buckets=[QuorumBucket("clinicians", 2)], holders={"clinicians": PEOPLE})
    assert quorum.approvals == 1


@given(who=signers, buckets=buckets_, holders=holders_)
def test_it_seats_as_many_as_trying_everything_would(
    who: list[UUID], buckets: list[QuorumBucket], holders: Holders
) -> None:
    if len(seats(buckets)) > 4:
        buckets = buckets[:2]
    quorum = quorum_of(own(who), buckets=buckets, holders=holders)
    assert quorum.approvals == by_trying_everything(who, buckets, holders)
    assert quorum.met == (quorum.approvals == len(seats(buckets)))


@given(who=signers, buckets=buckets_, holders=holders_)
def test_the_order_of_votes_does_not_matter(who: list[UUID], buckets: list[QuorumBucket], holders: Holders) -> None:
    forwards = quorum_of(own(who), buckets=buckets, holders=holders)
    backwards = quorum_of(own(who[::-1]), buckets=buckets, holders=holders)
    assert (forwards.approvals, forwards.met) == (backwards.approvals, backwards.met)
    assert forwards.open_tiers == backwards.open_tiers


@given(votes=voices, buckets=buckets_, holders=holders_, barred=groups)
def test_no_quorum_has_more_approvals_than_different_people_or_places(
    votes: list[Voice], buckets: list[QuorumBucket], holders: Holders, barred: frozenset[UUID]
) -> None:
    quorum = quorum_of(votes, buckets=buckets, holders=holders, barred=barred)
    voters = {voice.voter for voice in votes if voice.approves} - {None} - barred
    standing = {voice.authority for voice in votes if voice.approves} - {None} - barred
    assert quorum.approvals <= min(len(voters), len(standing), len(seats(buckets)))
    for bucket in quorum.buckets:
        assert 0 <= bucket.approvals <= min(bucket.required, len(holders[bucket.tier]))
        assert bucket.missing == bucket.required - bucket.approvals


@given(person=people, times=st.integers(1, 5), holders=holders_, buckets=buckets_)
def test_one_person_never_meets_two_whatever_their_roles(
    person: UUID, times: int, holders: Holders, buckets: list[QuorumBucket]
) -> None:
    votes = [Voice(person, authority, True, tier) for authority in PEOPLE for tier in ("", *TIERS)]
    votes += own([person] * times)
    quorum = quorum_of(votes, buckets=buckets, holders=holders)
    assert quorum.approvals <= 1
    assert not quorum.met or quorum.required == 1


@given(who=signers, buckets=buckets_, holders=holders_, gone=people, tier=tiers)
def test_losing_a_role_never_helps(
    who: list[UUID], buckets: list[QuorumBucket], holders: Holders, gone: UUID, tier: str
) -> None:
    with_role = quorum_of(own(who), buckets=buckets, holders=holders)
    without = quorum_of(own(who), buckets=buckets, holders={**holders, tier: holders[tier] - {gone}})
    assert without.approvals <= with_role.approvals


@given(who=signers, buckets=buckets_, holders=holders_, tier=tiers)
def test_a_tier_is_open_exactly_if_somebody_new_of_it_would_help(
    who: list[UUID], buckets: list[QuorumBucket], holders: Holders, tier: str
) -> None:
    fresh = UUID(int=99)
    quorum = quorum_of(own(who), buckets=buckets, holders=holders)
    joined = {**holders, tier: holders[tier] | {fresh}}
    after = quorum_of(own([*who, fresh]), buckets=buckets, holders=joined)
    assert (tier in quorum.open_tiers) == (after.approvals > quorum.approvals)
