"""The end of retention: calendar years, leap days to the safe side, UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.regions.rules import Profile, load_profiles, merge, retention_until, tighten

from .made_up import profiles

pytestmark = pytest.mark.unit

moments = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9800, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
US = merge(load_profiles().select(["US"]))
AE = merge(load_profiles().select(["AE"]))


def test_years_are_calendar_years() -> None:
    start = datetime(2026, 11, 16, 3, 25, 7, 123, tzinfo=UTC)
    assert retention_until(US, started_at=start) == datetime(2036, 11, 16, 3, 25, 7, 123, tzinfo=UTC)
    assert retention_until(AE, started_at=start).year == 2051


def test_a_leap_day_ends_on_the_first_of_march_where_there_is_none() -> None:
    start = datetime(2028, 2, 29, 12, tzinfo=UTC)
    assert retention_until(US, started_at=start) == datetime(2038, 3, 1, 12, tzinfo=UTC)


def test_a_leap_day_stays_one_where_there_is_one() -> None:
    twelve_years = tighten(US, stance={"retention_years": 12})
    start = datetime(2028, 2, 29, tzinfo=UTC)
    assert retention_until(twelve_years, started_at=start) == datetime(2040, 2, 29, tzinfo=UTC)


def test_the_day_is_taken_in_utc_whatever_zone_the_time_came_in() -> None:
    east = datetime(2028, 3, 1, 1, tzinfo=timezone(timedelta(hours=4)))
    assert retention_until(US, started_at=east) == datetime(2038, 3, 1, 21, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        retention_until(US, started_at=datetime(2026, 1, 1))  # noqa: DTZ001


@given(profile=profiles(), start=moments, later=st.timedeltas(timedelta(0), timedelta(days=4_000)))
def test_retention_never_ends_early_and_later_activity_never_shortens_it(
    profile: Profile, start: datetime, later: timedelta
) -> None:
    effective = merge([profile])
    until = retention_until(effective, started_at=start)
    years = effective.terms.retention_years
    assert until.year == start.year + years
    assert until - start >= timedelta(days=365 * years)
    assert retention_until(effective, started_at=start + later) >= until
