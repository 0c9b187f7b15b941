"""Random definitions × random orders × duplicates × stale and forged events × gates × clocks × people.

The rules themselves are in support.py and are checked at every single input."""

from collections.abc import Callable
from datetime import timedelta
from itertools import cycle
from uuid import UUID

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.workflows.engine.generators import definitions, happenings, verdicts
from tests.workflows.engine.support import COMPLETIONS, KINDS, START, Driven, check_end, definition, step
from workflows.definitions.rules.document import Definition
from workflows.engine.inputs import DeadlinePassed, GateAnswered, Intervened, RetryDue, Started, StepReported, TimedOut
from workflows.engine.interventions import LEGAL
from workflows.engine.state import StepState, correlation
from workflows.runs.states import ENDED, InterventionAction

pytestmark = pytest.mark.unit
many = examples(400, suppress_health_check=[HealthCheck.too_slow])
MODES = st.sampled_from(["active", "active", "client_driven"])


def happen(driven: Driven, name: str, number: int) -> None:
    """Whatever the name says, as far as there is anything to do it to; time passes on the way."""
    driven.now += timedelta(seconds=(number % 7) * (number % 41))
    current = driven.state.current()
    if name in LEGAL:
        _intervene(driven, name, current)
    elif name == "start":
        driven.start()
    elif name == "deadline":
        driven.now = max(driven.now, driven.state.deadline_at)
        driven.tell(DeadlinePassed(driven.state.deadline_at))
    elif name == "tick":
        driven.tell(DeadlinePassed(min(driven.now, driven.state.deadline_at - timedelta(seconds=1))))
    elif name in LOOSE:
        LOOSE[name](driven, number)
    elif current is not None:
        CURRENT[name](driven, current, number)


def _intervene(driven: Driven, name: str, current: StepState | None) -> None:
    """The shell asks only for what is legal."""
    busy = name in {"resume", "retry_step"} and current is not None and current.state != "pending"
    overdue = name in {"resume", "retry_step"} and driven.now >= driven.state.deadline_at
    if driven.status in LEGAL[name] and not busy and not overdue:
        driven.tell(Intervened(driven.now, InterventionAction(name), "planned_maintenance"))


def _completion(step: StepState, number: int) -> tuple[str, dict[str, object]]:
    kind = KINDS[step.kind]
    payload = dict(COMPLETIONS.get(step.kind, {}))
    payload |= {name: bool(number % 2) for name in ("granted", "passed") if name in payload}
    payload |= {"value": number % 11} if "value" in payload else {}
    return kind.completion.name if kind.completion else "nothing.completed", payload


def _complete(driven: Driven, step: StepState, number: int, **changes: object) -> None:
    name, payload = _completion(step, number)
    person = step.state == "waiting_approval" and bool(KINDS[step.kind].human_tier)
    driven.report(name, payload, **({"by_person": person} | changes))


def _again(driven: Driven, number: int) -> None:
    """The same word once more: at-least-once delivery, as far as it got past the event id."""
    told = [
        one for one, *_ in driven.log if isinstance(one, StepReported | GateAnswered | TimedOut | RetryDue | Started)
    ]
    if told:
        driven.tell(told[number % len(told)])


def _stale(driven: Driven, number: int) -> None:
    past = [one for one in driven.state.steps if not one.is_open]
    if past:
        one = past[number % len(past)]
        driven.report(*_completion(one, number), correlation_id=one.id, by_person=number % 3 == 0)


LOOSE: dict[str, Callable[[Driven, int], object]] = {
    "again": _again,
    "stale": _stale,
    "foreign": lambda d, n: (
        d.report(*_completion(d.state.steps[-1], n), correlation_id=UUID(int=n)) if d.state.steps else None
    ),
    "elsewhere": lambda d, n: d.report(
        *_completion(StepState(UUID(int=1), "x", sorted(COMPLETIONS)[n % len(COMPLETIONS)], 1, "x"), n)
    ),
    "time_out_elsewhere": lambda d, n: d.tell(
        TimedOut(d.now + timedelta(days=100), d.state.steps[0].id if len(d.state.steps) > 1 else UUID(int=n))
    ),
    "gate_elsewhere": lambda d, n: d.tell(GateAnswered(d.now, UUID(int=n), "allow")),
}
CURRENT: dict[str, Callable[[Driven, StepState, int], object]] = {
    "complete": lambda d, s, n: _complete(d, s, 1),
    "complete_otherwise": _complete,
    "unfit": lambda d, s, n: d.report(
        _completion(s, 0)[0],
        None if n % 2 or s.kind not in {"call_once", "call_check"} else {"value": 11},
    ),
    "fail": lambda d, s, n: d.fail(),
    "fail_for_good": lambda d, s, n: d.fail(retryable=False),
    "fail_tightened": lambda d, s, n: d.fail(retries_allowed=False),
    "forged": lambda d, s, n: _complete(d, s, n, by_person=s.state != "waiting_approval"),
    "time_out": lambda d, s, n: d.time_out() if s.timeout_at and s.timeout_at >= d.now else None,
    "time_out_early": lambda d, s, n: d.tell(TimedOut(d.now - timedelta(days=100), s.id)),
    "retry_due": lambda d, s, n: d.retry_due(),
    "retry_early": lambda d, s, n: d.tell(RetryDue(START - timedelta(seconds=1), s.id)),
    "gate": lambda d, s, n: d.gate(["allow", "hold", "later", "deny"][n % 4]),
}


@many
@given(definitions(), MODES, verdicts(), happenings(most=40))
def test_whatever_happens_in_whatever_order_every_rule_holds(
    found: Definition, mode: str, said: list[str], script: list[tuple[str, int]]
) -> None:
    answers = cycle(said)
    driven = Driven(found, mode, say=lambda: (next(answers), "policy_denied", 0))
    driven.start()
    for name, number in script:
        happen(driven, name, number)
    event(f"{mode} {driven.status}")
    check_end(driven)
    driven.tell(DeadlinePassed(driven.state.deadline_at))
    assert driven.status in ENDED | {"halted"}, "the workflow's deadline ends whatever goes on"
    check_end(driven)


@many
@given(definitions(), MODES, st.integers(0, 1))
def test_with_willing_modules_and_people_every_definition_comes_to_its_end(
    found: Definition, mode: str, yes: int
) -> None:
    driven = Driven(found, mode)
    driven.start()
    for _ in range(len(found.steps)):
        if driven.state.current() is not None:
            _complete(driven, driven.here, yes)
    assert driven.status in {"completed", "halted"}
    check_end(driven)


@many
@given(definitions(), happenings(most=25))
def test_what_comes_twice_does_nothing_the_second_time(found: Definition, script: list[tuple[str, int]]) -> None:
    """In mode active the correlation id alone is enough for that; client-driven modules are told apart by event_id."""
    driven = Driven(found)
    driven.start()
    for name, number in script:
        happen(driven, name, number)
        last = driven.log[-1][0]
        if isinstance(last, StepReported | TimedOut | DeadlinePassed | Started) and driven.log[-1][2] == "advanced":
            before = driven.state
            assert driven.tell(last).outcome != "advanced"
            assert driven.state == before


def test_correlation_ids_are_the_same_every_time_and_differ_by_instance_step_and_try() -> None:
    first, second = UUID(int=1), UUID(int=2)
    made = [correlation(one, name, n) for one in (first, second) for name in ("a", "b") for n in (1, 2)]
    assert len(set(made)) == 8
    assert made == [correlation(one, name, n) for one in (first, second) for name in ("a", "b") for n in (1, 2)]


@pytest.mark.parametrize("mode", ["active", "client_driven"])
def test_two_hundred_steps_that_answer_at_once_are_gone_through_in_one_go(mode: str) -> None:
    chain = {f"c{n}": step("condition", f"c{n + 1}") for n in range(99)}
    chain |= {"c99": step("condition", "w0")}
    chain |= {f"w{n}": step("emit_webhook", f"w{n + 1}") for n in range(99)}
    driven = Driven(definition(chain | {"w99": step("emit_final", "TERMINAL")}), mode)
    driven.start()
    assert driven.status == "completed"
    assert len(driven.state.steps) == 200
    check_end(driven)
