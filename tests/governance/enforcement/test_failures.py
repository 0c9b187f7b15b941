"""An evaluator that raises or dawdles is a denial, is on record, and replays the same without being run."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from governance.enforcement.rules import EVALUATORS, SLOWEST_SECONDS, Environment, evaluate, storable_request
from tests.governance.enforcement.support import as_bytes, environment, request, result_of

pytestmark = pytest.mark.unit

TIMED = ["metadata_boundary", *(name for name in EVALUATORS if name != "metadata_boundary")]


class Watch:
    """A stopwatch that jumps ahead between one pair of readings. The boundary is looked at first of all."""

    def __init__(self, *, slow_pair: int, seconds: float) -> None:
        self.readings: Iterator[float] = self._read(slow_pair, seconds)

    def _read(self, slow_pair: int, seconds: float) -> Iterator[float]:
        now, pair = 100.0, 0
        while True:
            yield now
            now += seconds if pair == slow_pair else 0.0
            pair += 1
            yield now

    def __call__(self) -> float:
        return next(self.readings)


def replayed(world: Environment, failures: Any) -> Environment:
    return replace(world, facts={**world.facts, "failures": dict(failures)})


@pytest.mark.parametrize(("pair", "evaluator"), list(enumerate(TIMED)))
def test_each_evaluator_that_takes_too_long_denies_and_replays_the_same(pair: int, evaluator: str) -> None:
    world = environment()
    watch = Watch(slow_pair=pair, seconds=SLOWEST_SECONDS + 0.01)
    decision = evaluate(request(), world, stopwatch=watch)
    assert (decision.verdict, decision.reason_code) == ("deny", "enforcement_exception")
    assert decision.failures == {evaluator: "timeout"}
    assert result_of(decision, evaluator).inputs == {"failure": "timeout"}
    stored = storable_request(request(), decision)
    assert as_bytes(evaluate(stored, replayed(world, decision.failures))) == as_bytes(decision)


@pytest.mark.parametrize("pair", range(len(TIMED)))
def test_the_limit_itself_is_not_too_long(pair: int) -> None:
    watch = Watch(slow_pair=pair, seconds=SLOWEST_SECONDS)
    assert evaluate(request(), environment(), stopwatch=watch).verdict == "allow"


@pytest.mark.parametrize("part", ["contract", "policy", "region"])
def test_a_snapshot_that_is_not_what_its_hash_says_fails_those_who_need_it(part: str) -> None:
    world = environment({f"facts.{part}_sha256": "0" * 64})
    decision = evaluate(request(), world)
    assert decision.verdict == "deny"
    assert set(decision.failures.values()) == {"raised:SnapshotMismatch"}
    named = "region" if part == "region" else "policy"
    assert result_of(decision, named).inputs == {"failure": "raised", "error": "SnapshotMismatch"}
    stored = storable_request(request(), decision)
    assert as_bytes(evaluate(stored, replayed(world, decision.failures))) == as_bytes(decision)


def test_a_stopwatch_that_breaks_is_a_denial_too() -> None:
    def broken() -> float:
        raise OSError("the clock of node-7 is gone")

    decision = evaluate(request(), environment(), stopwatch=broken)
    assert decision.reason_code == "enforcement_exception"
    assert set(decision.failures) == set(EVALUATORS)
    assert b"node-7" not in as_bytes(decision)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_recorded_failure_is_honoured_without_a_stopwatch(evaluator: str) -> None:
    decision = evaluate(request(), environment({"facts.failures": {evaluator: "raised:ZeroDivisionError"}}))
    assert decision.verdict == "deny"
    inputs = {"failure": "raised", "error": "ZeroDivisionError"}
    assert result_of(decision, evaluator).inputs == inputs
    assert decision.failures == {evaluator: "raised:ZeroDivisionError"}
    assert "Kind of error: ZeroDivisionError." in result_of(decision, evaluator).explanation
