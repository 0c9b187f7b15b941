"""Fair turns: by weight, starting from what each has, and nobody is passed over for ever."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.execution.rules import FairRound, Share

pytestmark = pytest.mark.unit
A, B, C = (UUID(int=number) for number in (1, 2, 3))


def served(shares: dict[UUID, Share], turns: int) -> Counter[UUID]:
    found, count = FairRound(shares), Counter[UUID]()
    for _ in range(turns):
        key = found.turn()
        assert key is not None
        count[key] += 1
        found.served(key)
    return count


def test_places_are_handed_out_by_weight() -> None:
    assert served({A: Share(3, 0), B: Share(1, 0)}, 40) == {A: 30, B: 10}


def test_who_has_much_already_waits_for_the_others() -> None:
    assert served({A: Share(1, 10), B: Share(1, 0)}, 10) == {B: 10}


def test_who_leaves_the_round_gets_no_turn_and_the_rest_goes_on() -> None:
    found = FairRound({A: Share(1, 0), B: Share(1, 0)})
    assert found.turn() == A
    assert found.turn() == B
    found.waits(B)
    assert found.turn() == B
    assert found.turn() is None


@given(weights=st.lists(st.integers(1, 20), min_size=1, max_size=6), rounds=st.integers(1, 10))
def test_after_whole_rounds_everybody_has_exactly_their_share(weights: list[int], rounds: int) -> None:
    shares = {UUID(int=number): Share(weight, 0) for number, weight in enumerate(weights)}
    count = served(shares, sum(weights) * rounds)
    assert [count[key] for key in shares] == [weight * rounds for weight in weights]


@given(
    weights=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=5), turns=st.integers(1, 80)
)
def test_nobody_is_served_while_another_has_less_for_its_weight(weights: list[tuple[int, int]], turns: int) -> None:
    shares = {UUID(int=number): Share(*pair) for number, pair in enumerate(weights)}
    found, has = FairRound(shares), {key: share.under_way for key, share in shares.items()}
    for _ in range(turns):
        key = found.turn()
        assert key is not None
        mine = (has[key] + 1) / shares[key].capacity
        assert all(mine <= (has[other] + 1) / shares[other].capacity + 1e-9 for other in shares)
        has[key] += 1
        found.served(key)
