"""The benchmark runs and its ratio is of the right size. Times themselves are for `bench`, on a quiet machine."""

import pytest

from bench.evaluate import run

pytestmark = pytest.mark.unit

# The median is about five times the reference; twice that means that something is compiled or hashed per request.
LARGEST_RATIO = 10


def test_a_decision_costs_a_small_multiple_of_writing_the_request_down() -> None:
    figures = min((run(rounds=400) for _ in range(3)), key=lambda each: each["ratio"])
    assert figures["rules"] == 50
    assert 0 < figures["median_us"] <= figures["p99_us"]
    assert figures["ratio"] < LARGEST_RATIO
