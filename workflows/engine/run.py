"""One advance in progress: the new state, the effects so far, and the outcome of the input. In the engine, `Run` is one
advance of a run, not the run itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from governance.conditions import ConditionError, EvaluationScope, compile_condition
from workflows.definitions.rules.document import Definition, StepDefinition
from workflows.engine.effects import Effect
from workflows.engine.state import InstanceState, StepState
from workflows.events.states import EventOutcome
from workflows.kinds.base import StepKind
from workflows.runs.states import Drift


class CannotDecide(Exception):
    """A condition could not be evaluated on this context."""


@dataclass(slots=True)
class Run:
    definition: Definition
    kinds: Mapping[str, StepKind]
    state: InstanceState
    effects: list[Effect] = field(default_factory=list)
    outcome: EventOutcome = EventOutcome.ADVANCED
    drift: Drift | None = None
    path: list[str] = field(default_factory=list)  # what happened, for the ledger: "ai_review completed on_complete"
    following: tuple[str, datetime] | None = None  # the step to enter next

    def step(self, current: StepState) -> StepDefinition:
        return self.definition.step(current.step_id)

    def kind(self, step_id: str) -> StepKind:
        return self.kinds[self.definition.step(step_id).kind]

    def note(self, step: StepState, *words: str) -> None:
        self.path.append(" ".join([step.step_id, *[word for word in words if word]]))

    def decider(self, at: datetime) -> Callable[[str], bool]:
        scope = EvaluationScope(now=at, case_id=self.state.case_id, definition_id=self.definition.id)

        def decide(expression: str) -> bool:
            try:
                return compile_condition(expression).evaluate(self.state.context, scope=scope)
            except ConditionError as error:
                raise CannotDecide from error

        return decide
