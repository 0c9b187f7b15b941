"""Each receiver's share of the places, and when its circuit opens, probes and closes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts.execution.adapters.base import failure, success, unknown
from attempts.receivers.rules import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    OPENS_AFTER,
    Bulkheads,
    CallHealth,
    Circuit,
    bad_weight,
    call_health,
)

pytestmark = pytest.mark.unit
AT = datetime(2026, 11, 18, 12, tzinfo=UTC)


def quick(bulkheads: Bulkheads, receiver: str, calls: int, *, now: float = 0.0) -> None:
    for _ in range(calls):
        bulkheads.begin(receiver, now=now)
        bulkheads.end(receiver, began=now, now=now + 0.01, good=True)


def fill(bulkheads: Bulkheads, receiver: str, *, now: float) -> int:
    """How many places it gets if it wants as many as it can."""
    taken = 0
    while bulkheads.has_room(receiver, now=now):
        bulkheads.begin(receiver, now=now)
        taken += 1
    return taken


def test_a_receiver_begins_with_a_small_share_and_a_fast_one_gets_half_of_the_places() -> None:
    bulkheads = Bulkheads(16)
    assert fill(bulkheads, "new", now=0) == 2
    quick(bulkheads, "fast", 20)
    assert fill(bulkheads, "fast", now=1) == 8


def test_a_fast_receiver_that_begins_to_hang_is_given_no_more_and_takes_nothing_from_another() -> None:
    bulkheads = Bulkheads(16)
    quick(bulkheads, "hangs", 20)
    quick(bulkheads, "fast", 20)
    assert fill(bulkheads, "hangs", now=100) == 8
    assert not bulkheads.has_room("hangs", now=110)
    assert fill(bulkheads, "fast", now=110) == 8
    bulkheads.end("hangs", began=100, now=130, good=False)
    assert not bulkheads.has_room("hangs", now=130)


def test_a_slow_answer_takes_the_larger_share_away() -> None:
    bulkheads = Bulkheads(16)
    quick(bulkheads, "fast", 20)
    bulkheads.begin("fast", now=50)
    bulkheads.end("fast", began=50, now=55, good=True)
    assert fill(bulkheads, "fast", now=55) == 2


def test_with_one_place_everybody_can_have_it() -> None:
    bulkheads = Bulkheads(1)
    assert fill(bulkheads, "a", now=0) == 1


@given(places=st.integers(2, 64), hanging=st.integers(1, 40))
def test_however_many_receivers_hang_a_fast_one_finds_a_place(places: int, hanging: int) -> None:
    bulkheads = Bulkheads(places)
    quick(bulkheads, "fast", 100)
    taken = sum(fill(bulkheads, f"hangs {number}", now=1) for number in range(hanging))
    assert taken <= max(1, places // 2) + bulkheads.small - 1
    assert bulkheads.has_room("fast", now=100)
    assert places - taken >= 1


@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 5)), max_size=60))
def test_shares_stay_within_their_bounds_whatever_happens(steps: list[tuple[str, bool, float]]) -> None:
    bulkheads, now, began = Bulkheads(16), 0.0, list[tuple[str, float]]()
    for receiver, good, seconds in steps:
        now += seconds
        if bulkheads.has_room(receiver, now=now):
            bulkheads.begin(receiver, now=now)
            began.append((receiver, now))
        elif began:
            first, at = began.pop(0)
            bulkheads.end(first, began=at, now=now, good=good)
        assert all(bulkheads.under_way(one) <= bulkheads.large for one in "abc")
        assert sum(bulkheads.under_way(one) for one in "abc") == len(began)


def opened() -> Circuit:
    circuit = Circuit()
    for _ in range(OPENS_AFTER):
        circuit = circuit.after_bad(at=AT)
    return circuit


def test_a_circuit_opens_after_five_bad_calls_in_a_row_or_two_without_an_answer() -> None:
    circuit = Circuit()
    for _ in range(OPENS_AFTER - 1):
        circuit = circuit.after_bad(at=AT)
        assert circuit.lets_through(at=AT)
    assert not circuit.after_bad(at=AT).lets_through(at=AT)
    once = Circuit().after_bad(at=AT, weight=bad_weight("timeout"))
    assert once.lets_through(at=AT)
    assert not once.after_bad(at=AT, weight=bad_weight("timeout")).lets_through(at=AT)
    assert bad_weight("no_connection") == 1


def test_an_open_circuit_lets_one_probe_through_when_its_pause_is_over() -> None:
    circuit = opened()
    assert not circuit.may_probe(at=AT + timedelta(seconds=FIRST_PAUSE - 0.1))
    later = AT + timedelta(seconds=FIRST_PAUSE)
    assert circuit.may_probe(at=later)
    probing = Circuit(circuit.failures, circuit.opened_at, 0, circuit.probe_at, later + timedelta(seconds=60))
    assert not probing.may_probe(at=later)
    assert probing.may_probe(at=later + timedelta(seconds=60)), "its worker died"


def test_each_probe_that_fails_doubles_the_pause_up_to_five_minutes() -> None:
    circuit, at, pauses = opened(), AT, []
    for _ in range(9):
        at = circuit.probe_at or at
        probing = Circuit(circuit.failures, circuit.opened_at, circuit.probes, circuit.probe_at, at)
        circuit = probing.after_bad(at=at)
        assert circuit.probe_at is not None
        pauses.append((circuit.probe_at - at).total_seconds())
    assert pauses[:3] == [FIRST_PAUSE * 2, FIRST_PAUSE * 4, FIRST_PAUSE * 8]
    assert pauses[-1] == LONGEST_PAUSE
    assert circuit.opened_at == AT, "since when it is open"


def test_calls_that_were_under_way_when_it_opened_do_not_make_the_pause_longer() -> None:
    circuit = opened()
    later = circuit.after_bad(at=AT + timedelta(seconds=2))
    assert (later.probe_at, later.probes) == (circuit.probe_at, 0)


@pytest.mark.parametrize(
    ("outcome", "health"),
    [
        (success(status=200), CallHealth.GOOD),
        (failure("refused", status=404), CallHealth.GOOD),
        (failure("refused", retryable=True, status=429), CallHealth.BAD),
        (failure("refused", retryable=True, status=503), CallHealth.BAD),
        (failure("no_connection", retryable=True), CallHealth.BAD),
        (unknown("timeout"), CallHealth.BAD),
        (unknown("connection"), CallHealth.BAD),
        (failure("target_not_configured"), CallHealth.NOTHING),
        (failure("address_refused"), CallHealth.NOTHING),
        (unknown("adapter_raised"), CallHealth.NOTHING),
    ],
)
def test_what_a_call_says_about_its_receiver(outcome: object, health: CallHealth) -> None:
    assert call_health(outcome.response_metadata) is health  # type: ignore[attr-defined]
