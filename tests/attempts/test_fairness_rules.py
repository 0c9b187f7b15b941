"""Fair turns by virtual time: by weight, by seconds used, for newcomers, and over many places at once."""

import heapq
from collections import Counter, defaultdict, deque
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attempts.fairness.rules import LEAST_COST, FairQueue, Turn, in_turns

pytestmark = pytest.mark.unit


def turns(queue: FairQueue[str], waiting: dict[str, int], number: int, *, seconds: float = 1.0) -> Counter[str]:
    served: Counter[str] = Counter()
    for _ in range(number):
        key = queue.choose(waiting)
        queue.end(queue.begin(key, waiting[key]), seconds=seconds)
        served[key] += 1
    return served


def test_turns_are_given_by_weight() -> None:
    assert turns(FairQueue(), {"a": 3, "b": 1}, 40) == {"a": 30, "b": 10}


def test_who_comes_late_is_next_and_gets_no_more_than_a_share_for_the_time_before() -> None:
    queue: FairQueue[str] = FairQueue()
    turns(queue, {"a": 1}, 500)
    assert turns(queue, {"a": 1, "b": 1}, 2)["b"] == 1
    after = turns(queue, {"a": 1, "b": 1}, 100)
    assert abs(after["a"] - after["b"]) <= 2


def test_a_place_that_was_not_used_costs_nothing() -> None:
    queue: FairQueue[str] = FairQueue()
    for _ in range(50):
        queue.cancel(queue.begin("a", 1))
    assert turns(queue, {"a": 1, "b": 1}, 10) == {"a": 5, "b": 5}


def test_who_used_many_places_that_nobody_wanted_waits_ten_seconds_worth_for_it_at_most() -> None:
    queue: FairQueue[str] = FairQueue()
    held = [queue.begin("a", 1) for _ in range(16)]
    for one in held:
        queue.end(one, seconds=1000)
    served = turns(queue, {"a": 1, "b": 1}, 60)
    assert served["a"] >= 20


@given(weights=st.lists(st.integers(1, 9), min_size=2, max_size=6), number=st.integers(1, 300))
def test_nobody_is_ahead_by_more_than_one_turn_for_their_weight(weights: list[int], number: int) -> None:
    waiting = {str(place): weight for place, weight in enumerate(weights)}
    served = turns(FairQueue(), waiting, number)
    for one, other in ((one, other) for one in waiting for other in waiting if one != other):
        apart = served[one] / waiting[one] - served[other] / waiting[other]
        assert apart <= 1 / waiting[one] + 1 / waiting[other] + 1e-6


@given(
    weights=st.lists(st.integers(1, 5), min_size=2, max_size=6),
    costs=st.lists(st.floats(0.02, 5), min_size=6, max_size=6),
)
@settings(deadline=None)
def test_whoever_waits_gets_a_turn_within_a_bounded_number_of_turns(weights: list[int], costs: list[float]) -> None:
    """No starvation, whatever the turns of the others take."""
    waiting = {str(place): weight for place, weight in enumerate(weights)}
    cost = dict(zip(waiting, costs, strict=False))
    queue: FairQueue[str] = FairQueue()
    last = dict.fromkeys(waiting, 0)
    # The one with the shortest calls may have this many before the one with the longest has one.
    longest, shortest = max(cost.values()), max(LEAST_COST, min(cost.values()))
    bound = sum(weights) * (longest / shortest + 12)
    for number in range(400):
        key = queue.choose(waiting)
        queue.end(queue.begin(key, waiting[key]), seconds=cost[key])
        last[key] = number
        assert all(number - before <= bound for before in last.values())


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=6),
    weights=st.lists(st.integers(1, 9), min_size=6, max_size=6),
)
def test_lines_are_worked_off_in_turns_by_weight_and_nothing_is_lost(lengths: list[int], weights: list[int]) -> None:
    lines = {key: [(key, number) for number in range(length)] for key, length in enumerate(lengths)}
    weight = dict(enumerate(weights))
    left, served = dict(enumerate(lengths)), Counter[int]()
    for key, number in in_turns(lines, weight):
        assert number == served[key]  # each line in its order
        mine = (served[key] + 1) / weight[key]
        assert all(mine <= (served[other] + 1) / weight[other] + 1e-9 for other in left if served[other] < left[other])
        served[key] += 1
    assert served == Counter(left)


class Simulation:
    """Places, tenants and their calls; time is virtual. Returns the waits of each tenant."""

    def __init__(self, places: int, fair: bool = True) -> None:
        self.free, self.fair = places, fair
        self.queue: FairQueue[str] = FairQueue()
        self.lines: dict[str, deque[tuple[float, float, int]]] = defaultdict(deque)
        self.weights: dict[str, int] = {}
        self.events: list[tuple[float, int, object]] = []
        self.number = count()
        self.waits: dict[str, list[float]] = defaultdict(list)

    def send(self, tenant: str, calls: int, *, at: float, seconds: float, weight: int = 1) -> None:
        self.weights[tenant] = weight
        for _ in range(calls):
            heapq.heappush(self.events, (at, next(self.number), (tenant, seconds)))

    def run(self) -> dict[str, list[float]]:
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, number, what = heapq.heappop(self.events)
                if isinstance(what, tuple) and isinstance(what[0], Turn):
                    self.free += 1
                    self.queue.end(what[0], seconds=what[1])
                elif isinstance(what, tuple):
                    self.lines[what[0]].append((now, what[1], number))
            self._serve(now)
        return self.waits

    def _serve(self, now: float) -> None:
        while self.free and any(self.lines.values()):
            waiting = {tenant: self.weights[tenant] for tenant, line in self.lines.items() if line}
            first = min(waiting, key=lambda tenant: self.lines[tenant][0][2])
            tenant = self.queue.choose(waiting) if self.fair else first
            came, seconds, _ = self.lines[tenant].popleft()
            self.waits[tenant].append(now - came)
            self.free -= 1
            turn = self.queue.begin(tenant, waiting[tenant])
            heapq.heappush(self.events, (now + seconds, next(self.number), (turn, seconds)))


def p95(waits: list[float]) -> float:
    return sorted(waits)[max(0, -(-len(waits) * 95 // 100) - 1)]


PLACES = 16


@pytest.mark.parametrize("tenants", [2, 10, 100])
def test_five_calls_beside_500_of_another_wait_at_most_twice_as_long_as_alone_with_their_share(tenants: int) -> None:
    """All but the first send five calls of a second, just after the first has sent 500."""
    simulation = Simulation(PLACES)
    simulation.send("a", 500, at=0, seconds=1)
    small = [f"b{number}" for number in range(tenants - 1)]
    for tenant in small:
        simulation.send(tenant, 5, at=0.5, seconds=1)
    waits = simulation.run()
    worst = max(p95(waits[tenant]) for tenant in small)
    # Alone with the share of one tenant: its part of the places, and at least every call after the one before.
    rounds = -(-5 * tenants // PLACES)
    alone = max(1.0, float(rounds - 1))
    assert worst <= 2 * alone, (worst, alone)


def test_first_come_first_served_would_let_them_wait_for_all_500() -> None:
    simulation = Simulation(PLACES, fair=False)
    simulation.send("a", 500, at=0, seconds=1)
    simulation.send("b", 5, at=0.5, seconds=1)
    assert p95(simulation.run()["b"]) > 25


def test_short_calls_do_not_take_turns_with_long_ones_but_with_their_time() -> None:
    simulation = Simulation(4)
    simulation.send("long", 60, at=0, seconds=5)
    for number in range(400):
        simulation.send("short", 1, at=10 + number * 0.1, seconds=0.05)
    waits = simulation.run()
    # Once a place is free, the one that used little of its time is first.
    assert p95(waits["short"]) <= 5.0
    assert sum(waits["short"]) / len(waits["short"]) < 2.5
