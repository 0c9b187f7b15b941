"""Random block-structured definitions × random orders × duplicates × late answers × gates × clocks × people × crashes:
the state is built from stored rows before every input. The rules are in `blocks_support`, checked at every input."""

from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.engine.block_generators import block_definitions, happenings
from tests.workflows.engine.blocks_support import ANSWERS, KINDS, Driven, check_end
from tests.workflows.engine.generators import verdicts
from tests.workflows.engine.support import START
from workflows.definitions.rules.document import Definition
from workflows.engine.inputs import DeadlinePassed, GateAnswered, Intervened, Overdue, RetryDue, StepReported, TimedOut
from workflows.engine.interventions import LEGAL
from workflows.engine.state import StepState
from workflows.runs.states import ENDED

GIVEN = {"small": 3, "three": [1, 2, 3]}
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def _completed(step: StepState, payload: dict[str, object] | None, person: bool) -> StepReported:
    completion = KINDS[step.kind].completion
    name = completion.name if completion else "nothing.completed"
    return StepReported(START, name, step.id, payload, by_person=person)


def _report(driven: Driven, step: StepState, **changes: object) -> None:
    driven.tell(_at(driven, _completed(step, ANSWERS.get(step.kind, {}) | changes, step.state == "waiting_approval")))


def _at(driven: Driven, report: StepReported) -> StepReported:
    failed = driven.state.by_id(report.correlation_id)
    return StepReported(
        driven.now,
        report.event_type,
        report.correlation_id,
        report.payload,
        by_person=report.by_person,
        contradicts=failed is not None and failed.state == "failed",
    )


def _again(driven: Driven, number: int) -> None:
    """At-least-once delivery; of people's acts the shell refuses what is not legal any more."""
    told = [one for one in driven.log if not isinstance(one, Intervened)]
    driven.tell(told[number % len(told)])


def _stale(driven: Driven, number: int) -> None:
    past = [one for one in driven.state.steps if not one.is_open]
    if past:
        _report(driven, past[number % len(past)])


def _intervene(driven: Driven, name: str, number: int) -> None:
    """The shell asks only for what is legal."""
    waiting = [one for one in driven.state.working() if one.state == "pending"]
    goes_on = name in {"resume", "retry_step"}
    if driven.state.state not in LEGAL[name] or (goes_on and driven.now >= driven.state.deadline_at):
        return
    if name == "retry_step" and driven.state.state == "running":
        if waiting:
            driven.intervene(name, waiting[number % len(waiting)].id)
    elif not (goes_on and driven.state.working()):
        driven.intervene(name)


WITH_A_STEP: dict[str, Callable[[Driven, StepState, int], object]] = {
    "complete": lambda d, s, n: _report(d, s),
    "fail": lambda d, s, n: d.fail(s),
    "fail_retryable": lambda d, s, n: d.fail(s, retryable=True),
    "unfit": lambda d, s, n: d.tell(_at(d, _completed(s, None, False))) if n % 5 == 0 else None,
    "forged": lambda d, s, n: d.tell(_at(d, _completed(s, {"value": 2}, s.state != "waiting_approval"))),
    "time_out": lambda d, s, n: d.time_out(s) if s.timeout_at else None,
    "time_out_early": lambda d, s, n: d.tell(TimedOut(START - timedelta(days=1), s.id)),
    "due": lambda d, s, n: d.due(s),
    "due_early": lambda d, s, n: d.tell(RetryDue(START - timedelta(seconds=1), s.id)),
    "overdue": lambda d, s, n: d.tell(Overdue(max(d.now, s.due_at or d.now), s.id)),
    "gate": lambda d, s, n: d.tell(
        GateAnswered(d.now, s.id, ["allow", "hold", "later", "deny"][n % 4], "policy_denied")
    ),
}


def happen(driven: Driven, name: str, number: int) -> None:
    driven.now += timedelta(seconds=(number % 5) * (number % 11))
    open_steps = [one for one in driven.state.steps if one.is_open]
    if name in LEGAL:
        _intervene(driven, name, number)
    elif name == "start":
        driven.start()
    elif name == "deadline":
        driven.now = max(driven.now, driven.state.deadline_at)
        driven.tell(DeadlinePassed(driven.state.deadline_at))
    elif name == "gate_elsewhere":
        driven.tell(GateAnswered(driven.now, UUID(int=number), "allow"))
    elif name == "again":
        _again(driven, number)
    elif name == "stale":
        _stale(driven, number)
    elif open_steps:
        WITH_A_STEP[name](driven, open_steps[number % len(open_steps)], number)


def _whatever(found: Definition, said: list[str], script: list[tuple[str, int]]) -> None:
    answers = cycle(said)
    driven = Driven(found, say=lambda: (next(answers), "policy_denied", 0), given=GIVEN)
    driven.start()
    for name, number in script:
        happen(driven, name, number)
    event(driven.state.state)
    check_end(driven)
    driven.tell(DeadlinePassed(driven.state.deadline_at))
    assert driven.state.state in ENDED | {"halted"}, "the workflow's deadline ends whatever goes on"
    check_end(driven)


@pytest.mark.unit
@examples(150, suppress_health_check=SLOW)
@given(block_definitions(), verdicts(), happenings(most=40))
def test_whatever_happens_in_whatever_order_no_token_is_lost_or_doubled(
    found: Definition, said: list[str], script: list[tuple[str, int]]
) -> None:
    _whatever(found, said, script)


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None, suppress_health_check=SLOW)
@given(block_definitions(), verdicts(), happenings(most=60))
def test_twenty_thousand_runs_lose_no_token(found: Definition, said: list[str], script: list[tuple[str, int]]) -> None:
    _whatever(found, said, script)


@pytest.mark.unit
@examples(100, suppress_health_check=SLOW)
@given(block_definitions(), st.integers(0, 1000))
def test_with_willing_modules_and_people_every_definition_comes_to_its_end(found: Definition, order: int) -> None:
    """In any order. It may halt where its own conditions cannot be evaluated or its own halt steps are reached."""
    driven = Driven(found, given=GIVEN)
    driven.start()
    for number in range(2000):
        waiting = driven.state.working()
        if not waiting:
            break
        step = waiting[(order + number) % len(waiting)]
        if step.next_eligible_at is not None:
            driven.due(step)
        else:
            _report(driven, step)
    assert driven.state.state in {"completed", "halted"}
    check_end(driven)
