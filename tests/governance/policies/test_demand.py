"""Whether one demand for approval covers another: checked against people who sign, and as an order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.policies.rules.demand import covers, demand_in, demand_of

pytestmark = pytest.mark.unit
TIERS = ("clinician", "privacy", "qa")
demands = st.dictionaries(st.sampled_from(TIERS), st.integers(1, 4), max_size=3)


def met(demand: dict[str, int], signed: dict[str, int]) -> bool:
    """Whether so many different people of each tier, each of one tier only, are enough."""
    return all(signed.get(tier, 0) >= people for tier, people in demand.items())


@given(demands, demands)
def test_what_covers_is_met_by_everybody_who_met_the_other_and_only_then(
    given_: dict[str, int], asked: dict[str, int]
) -> None:
    # Whoever met `given_` signed at least so: the smallest such set of signers decides.
    assert covers(given_, asked) == met(asked, given_)


@given(demands, demands, demands)
def test_covering_is_an_order(one: dict[str, int], two: dict[str, int], three: dict[str, int]) -> None:
    assert covers(one, one)
    assert not (covers(one, two) and covers(two, three)) or covers(one, three)
    assert not (covers(one, two) and covers(two, one)) or one == two


@given(demands, st.sampled_from(TIERS), st.integers(1, 3))
def test_one_more_person_or_tier_is_no_longer_covered(demand: dict[str, int], tier: str, more: int) -> None:
    higher = demand | {tier: demand.get(tier, 0) + more}
    assert covers(higher, demand)
    assert not covers(demand, higher)


@given(demands)
def test_nobody_is_covered_by_everything_and_nobody_covers_only_nobody(demand: dict[str, int]) -> None:
    assert covers(demand, {})
    assert covers({}, demand) == (not demand)


@pytest.mark.parametrize(
    ("outcome", "demand"),
    [
        ({"tier": "qa", "approvals_required": 2}, {"qa": 2}),
        ({"tier": "qa", "approvals_required": 3, "buckets": []}, {"qa": 3}),
        (
            {"tier": "qa", "approvals_required": 3, "buckets": [{"tier": "qa", "approvals_required": 1}]},
            {"qa": 1},
        ),
    ],
)
def test_buckets_count_before_the_first_tier_and_the_sum(outcome: dict[str, Any], demand: dict[str, int]) -> None:
    assert demand_in(outcome) == demand


def test_two_buckets_of_one_tier_count_together() -> None:
    part = {"tier": "qa", "approvals_required": 1}
    assert demand_of([part, part]) == {"qa": 2}
