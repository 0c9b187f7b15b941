"""The arithmetic of time that counts, against a slow reading of what it means: second by second."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.outages.rules import MOST, Outage, fair_deadline, merged
from tests.properties import examples

pytestmark = pytest.mark.unit
START = datetime(2026, 11, 18, tzinfo=UTC)
ALWAYS = timedelta(days=400)
moments = st.integers(0, 300).map(lambda second: START + timedelta(seconds=second))
outages = st.lists(st.builds(Outage, moments, moments), max_size=6)
many = examples(300)


def counted(began: datetime, until: datetime, found: list[Outage]) -> int:
    """Seconds of the time between that no outage covers, counted one by one."""
    seconds = (began + timedelta(seconds=number) for number in range(round((until - began).total_seconds())))
    return sum(not any(one.began <= second < one.ended for one in found) for second in seconds)


@many
@given(began=moments, given_seconds=st.integers(0, 200), found=outages)
def test_as_much_time_counts_as_was_given_and_not_a_second_more(
    began: datetime, given_seconds: int, found: list[Outage]
) -> None:
    deadline = began + timedelta(seconds=given_seconds)
    fair = fair_deadline(deadline, began=began, outages=found, most=ALWAYS)
    assert fair >= deadline
    assert counted(began, fair, found) == given_seconds
    if given_seconds:
        assert counted(began, fair - timedelta(seconds=1), found) == given_seconds - 1


@many
@given(began=moments, given_seconds=st.integers(0, 200), found=outages, more=outages)
def test_another_outage_never_shortens_a_deadline_and_order_and_overlap_say_nothing(
    began: datetime, given_seconds: int, found: list[Outage], more: list[Outage]
) -> None:
    deadline = began + timedelta(seconds=given_seconds)
    fair = fair_deadline(deadline, began=began, outages=found)
    assert fair_deadline(deadline, began=began, outages=[*found, *more]) >= fair
    assert fair_deadline(deadline, began=began, outages=[*reversed(found), *found]) == fair
    assert fair_deadline(deadline, began=began, outages=merged(found)) == fair


@many
@given(began=moments, given_seconds=st.integers(0, 200), found=outages)
def test_outages_before_and_after_the_time_that_was_given_change_nothing(
    began: datetime, given_seconds: int, found: list[Outage]
) -> None:
    deadline = began + timedelta(seconds=given_seconds)
    outside = [one for one in found if one.ended <= began or one.began >= deadline]
    assert fair_deadline(deadline, began=began, outages=outside) == deadline


@given(hours=st.integers(1, 500), given_seconds=st.integers(1, 200))
def test_no_outage_moves_a_deadline_by_more_than_a_day(hours: int, given_seconds: int) -> None:
    deadline = START + timedelta(seconds=given_seconds)
    long = [Outage(START, START + timedelta(hours=hours))]
    assert fair_deadline(deadline, began=START, outages=long) == deadline + min(timedelta(hours=hours), MOST)
