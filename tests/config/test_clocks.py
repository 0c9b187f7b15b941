"""A process whose clock differs from the database's says so, and drops no message because of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from config.clocks import KEY, MOST_SECONDS, FairRequest, OwnClock, clocks_apart, own_clock, seconds_ahead
from config.lanes import LaneTask
from governance.outside.valkey import valkey

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    valkey().delete(KEY)
    yield
    valkey().delete(KEY)
    own_clock.ahead = 0.0


def test_a_clock_that_agrees_is_not_mentioned() -> None:
    assert abs(seconds_ahead()[0]) < MOST_SECONDS
    OwnClock().look()
    assert clocks_apart() == []
    assert "note" not in Client().get("/health/ready").json()["checks"]["clocks"]


@pytest.mark.parametrize("seconds", [-30, 30])
def test_a_worker_whose_clock_differs_is_in_readiness(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    clock = OwnClock()
    with monkeypatch.context() as skewed:
        skewed.setattr("config.clocks.time.time", lambda: datetime.now(tz=UTC).timestamp() + seconds)
        clock.look()
    assert clock.ahead == pytest.approx(seconds, abs=1)
    assert abs(clock.now() - (datetime.now(tz=UTC) - timedelta(seconds=seconds))) < timedelta(seconds=1)
    assert clocks_apart() == [pytest.approx(seconds, abs=1)]
    answer = Client().get("/health/ready").json()
    assert "1 processes have another time than the database" in answer["checks"]["clocks"]["note"]
    assert answer["status"] in {"degraded", "unavailable"}


def test_what_a_process_that_is_gone_has_measured_is_forgotten() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::bigint - 3600")
        (long_ago,) = cursor.fetchone()
    valkey().hset(KEY, "gone:1", f"99.0 {long_ago}")
    assert clocks_apart() == []
    assert not valkey().hexists(KEY, "gone:1")


def request(expires: datetime | None) -> FairRequest:
    found: Any = FairRequest.__new__(FairRequest)
    found._expires, found.name = expires, "config.tasks.heartbeat"
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("ahead", "expires_in", "expired"), [(0, 5, False), (0, -5, True), (60, -30, False), (-60, 30, True)]
)
def test_a_message_expires_by_the_databases_time(ahead: int, expires_in: int, expired: bool) -> None:
    """Ahead by a minute, the own clock says that it ended half a minute ago; in truth it has another half."""
    own_clock.ahead = float(ahead)
    assert request(datetime.now(tz=UTC) + timedelta(seconds=expires_in)).maybe_expire() is expired
    assert request(None).maybe_expire() is False


def test_workers_use_it_for_every_task() -> None:
    assert LaneTask.Request == "config.clocks:FairRequest"
