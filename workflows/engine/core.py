"""The engine: `advance(definition, state, input) → new state + effects`. No database, no clock, no randomness: replay
feeds the log through it again and must reach the stored state."""

from collections.abc import Callable, Mapping
from typing import Any

from workflows.definitions.rules.document import Definition
from workflows.engine.effects import AskGate
from workflows.engine.gates import gate_answered
from workflows.engine.inputs import (
    DeadlinePassed,
    GateAnswered,
    Input,
    Intervened,
    RetryDue,
    Started,
    StepReported,
    TimedOut,
)
from workflows.engine.interventions import intervened
from workflows.engine.moves import enter, go_on, run_announce
from workflows.engine.reports import reported
from workflows.engine.run import Run
from workflows.engine.state import InstanceState
from workflows.engine.timing import deadline_passed, retry_due, timed_out
from workflows.events.states import EventOutcome
from workflows.kinds.base import StepKind
from workflows.runs.states import InstanceStatus

Gate = Callable[[AskGate, InstanceState], GateAnswered]


def started(run: Run, event: Started) -> None:
    if run.state.state != InstanceStatus.QUEUED:
        run.outcome = EventOutcome.STALE
        return
    run_announce(run)
    enter(run, run.definition.start_step, event.at)


HANDLERS: dict[type, Callable[[Run, Any], None]] = {
    Started: started,
    StepReported: reported,
    GateAnswered: gate_answered,
    TimedOut: timed_out,
    DeadlinePassed: deadline_passed,
    RetryDue: retry_due,
    Intervened: intervened,
}


def advance(definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input) -> Run:
    """Works on a copy; the given state is not changed."""
    return _advance(definition, kinds, state.copy(), happened)


def _advance(definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input) -> Run:
    run = Run(definition, kinds, state)
    HANDLERS[type(happened)](run, happened)
    go_on(run)
    return run


def drive(
    definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, happened: Input, *, gate: Gate
) -> Run:
    """`advance`, and again with the gate's answer for as long as a step asks the gate. Replay gives the recorded
    answers.

    The effects are in the order in which they must be applied; the questions to the gate are taken out.
    """
    run = advance(definition, kinds, state, happened)
    while (asked := next((one for one in run.effects if isinstance(one, AskGate)), None)) is not None:
        following = _advance(definition, kinds, run.state, gate(asked, run.state))
        # The answer's effects go where the question was: the outbox numbers events in this order.
        place = run.effects.index(asked)
        following.effects = run.effects[:place] + following.effects + run.effects[place + 1 :]
        following.path = run.path + following.path
        # The log's row is about the input that came first; the gate's answers are facts of that row.
        following.outcome, following.drift = run.outcome, run.drift or following.drift
        run = following
    return run
