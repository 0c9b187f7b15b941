"""What a finished run would have done under another definition: what was recorded about each step, fed to the step of
that name when it asks. Nothing is sent, and nothing is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.definitions.rules.document import Definition
from workflows.engine.core import drive
from workflows.engine.effects import AskGate
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
from workflows.engine.state import InstanceState, StepState
from workflows.kinds.base import StepKind
from workflows.runs.states import ENDED, InstanceStatus, InterventionAction, StepStatus

WAITS = "waits"  # the end of a story whose next step was never answered
MOST_INPUTS = 5000  # a draft may loop further than any recorded run did


@dataclass(frozen=True, slots=True)
class Recorded:
    """One input of the log. `step_id` is the step that it is about, if it is about one; `gates` are the hold point's
    answers in the same row, each with its step."""

    input: Input
    step_id: str = ""
    gates: tuple[tuple[str, GateAnswered], ...] = ()


@dataclass(frozen=True, slots=True)
class RunStory:
    """How a run went. `path` has each try that ended, with its outcome."""

    end: str
    reason: str
    path: tuple[str, ...]
    output: dict[str, Any] | None
    waits_for: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()  # steps whose side effect nobody was asked about; taken as allowed

    def differs_from(self, other: "RunStory") -> list[str]:
        """What is not the same, by name."""
        parts = ("end", "reason", "path", "output")
        return [name for name in parts if getattr(self, name) != getattr(other, name)]


def story_of(state: InstanceState) -> RunStory:
    """Of a state with all its tries."""
    waits = tuple(_name(step) for step in state.working()) if state.state not in _STOPPED else ()
    return RunStory(
        end=state.state if state.state in _STOPPED else WAITS,
        reason=state.halt_reason,
        path=tuple(_ended(step) for step in state.steps if not step.is_open),
        output=state.output,
        waits_for=waits,
    )


_STOPPED = frozenset({*ENDED, InstanceStatus.HALTED})


def _name(step: StepState) -> str:
    return f"{step.scope}/{step.step_id}" if step.scope else step.step_id


def _ended(step: StepState) -> str:
    return f"{_name(step)} {step.outcome or step.state}"


def what_if(
    definition: Definition, kinds: Mapping[str, StepKind], state: InstanceState, recorded: Sequence[Recorded]
) -> RunStory:
    """`state`: of a run of this definition that has not started."""
    return _Feeding(definition, kinds, state, list(recorded)).story()


@dataclass(slots=True)
class _Feeding:
    definition: Definition
    kinds: Mapping[str, StepKind]
    state: InstanceState
    left: list[Recorded]
    gates: list[tuple[str, GateAnswered]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    at: datetime | None = None

    def story(self) -> RunStory:
        self.gates = [answer for one in self.left for answer in one.gates]
        following = self._taken(next((one for one in self.left if isinstance(one.input, Started)), None))
        for _ in range(MOST_INPUTS):
            if following is None or self.state.state in ENDED:
                break
            self._feed(following)
            following = self._next()
        return replace(story_of(self.state), assumed=tuple(dict.fromkeys(self.assumed)))

    def _feed(self, given: Input) -> None:
        # Steps may come in another order than they were answered in; time does not go back.
        self.at = max(self.at or given.at, given.at)
        self.state = drive(self.definition, self.kinds, self.state, replace(given, at=self.at), gate=self._gate).state

    def _gate(self, ask: AskGate, state: InstanceState) -> GateAnswered:
        at = self.at
        if at is None:
            raise ValueError("nothing has happened yet")
        mine = [one for one in self.gates if one[0] == ask.step_id]
        found = next((one for one in mine if one[1].step == ask.step), mine[0] if mine else None)
        if found is None:
            # What the hold point would say depends on policy and people of that time: nobody knows.
            self.assumed += [ask.step_id] if ask.governed else []
            return GateAnswered(at, ask.step, "allow")
        self.gates.remove(found)
        return replace(found[1], at=at, step=ask.step)

    def _next(self) -> Input | None:
        if self.state.state == InstanceStatus.HALTED:
            return self._by_people(*_GOES_ON) or self._by_people(*_ENDS)
        asking = self.state.working()
        for one in self.left:
            step = next((step for step in asking if step.step_id == one.step_id), None)
            if step is not None and self._fits(one, step):
                # Of several open steps of one name, the answer to exactly this one comes first.
                exact = next((step for step in asking if step.id == _about(one.input)), step)
                self._taken(one)
                return _for(one.input, exact)
        return self._timer(asking) or self._by_people(*_ENDS) or self._last()

    def _fits(self, one: Recorded, step: StepState) -> bool:
        if isinstance(one.input, GateAnswered):
            return step.state == StepStatus.WAITING_APPROVAL
        if isinstance(one.input, RetryDue):
            return step.state == StepStatus.PENDING
        return isinstance(one.input, StepReported | TimedOut)

    def _timer(self, asking: list[StepState]) -> Input | None:
        """The first timer that runs: waiting needs nobody."""
        due = [(step.next_eligible_at, step) for step in asking if step.next_eligible_at is not None]
        if not due:
            return None
        at, step = min(due, key=lambda one: one[0])
        return RetryDue(at, step.id)

    def _by_people(self, *actions: InterventionAction) -> Input | None:
        found = [one for one in self.left if isinstance(one.input, Intervened) and one.input.action in actions]
        return self._taken(found[0]) if found else None

    def _last(self) -> Input | None:
        return self._taken(next((one for one in self.left if isinstance(one.input, DeadlinePassed)), None))

    def _taken(self, one: Recorded | None) -> Input | None:
        if one is None:
            return None
        self.left.remove(one)
        return one.input


_GOES_ON = (InterventionAction.RESUME, InterventionAction.RETRY_STEP)
_ENDS = (InterventionAction.CANCEL, InterventionAction.SUPERSEDE)


def _about(given: Input) -> UUID | None:
    if isinstance(given, StepReported):
        return given.correlation_id
    return given.step if isinstance(given, GateAnswered | TimedOut | RetryDue) else None


def _for(given: Input, step: StepState) -> Input:
    """The same input, about this step."""
    if isinstance(given, StepReported):
        return replace(given, correlation_id=step.id)
    if isinstance(given, TimedOut):
        return replace(given, step=step.id, at=max(given.at, step.timeout_at or given.at))
    if isinstance(given, GateAnswered | RetryDue):
        return replace(given, step=step.id)
    return given
