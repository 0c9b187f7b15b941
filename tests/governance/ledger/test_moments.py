"""Times of entries against the clock of the database that wrote them."""

from datetime import UTC, datetime, timedelta

import pytest

from governance.sealing.rules.moments import clocks_gone_back, moment_fits

pytestmark = pytest.mark.unit
ENDED = datetime(2026, 11, 19, 12, tzinfo=UTC)
CLOCK = int(ENDED.timestamp()) * 1_000_000
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("told", "who", "fits"),
    [
        (timedelta(0), "person", True),
        (timedelta(minutes=4), "person", True),
        (timedelta(minutes=6), "person", False),
        (timedelta(minutes=6), "clock", False),
        (timedelta(hours=-24), "service", True),
        (timedelta(hours=-26), "service", False),
        (timedelta(days=-400), "person", False),
        (timedelta(days=-400), "clock", True),
        (timedelta(days=-400), "system", True),
    ],
)
def test_an_entry_tells_the_time_of_its_transaction_and_only_the_clock_dates_back(
    told: timedelta, who: str, fits: bool
) -> None:
    assert moment_fits(told=ENDED + told, clock=CLOCK, actor_kind=who) is fits


def test_a_clock_may_go_back_as_far_as_a_transaction_is_long() -> None:
    hours = [0, 5, 1, 20, 3, 30, 4, 5, 31]
    clocks = [(position, CLOCK + hour * HOUR) for position, hour in enumerate(hours)]
    assert list(clocks_gone_back(clocks)) == [6]
    assert list(clocks_gone_back(clocks[:6])) == []
