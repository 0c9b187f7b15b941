"""A run and its steps as plain values, and the run while one input is being processed.

Rows are written from these, and replay compares both.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid5

from governance.conditions import EvaluationScope
from workflows.definitions.rules.document import Definition, StepDefinition
from workflows.engine.effects import Effect
from workflows.engine.values import ContextEvaluator
from workflows.events.states import EventOutcome
from workflows.kinds.base import Json, StepKind
from workflows.runs.states import STEP_OPEN, Drift, InstanceStatus, StepStatus


@dataclass(slots=True)
class StepState:
    """One try of one step. Its id is the correlation id that the module sends back."""

    id: UUID
    step_id: str
    kind: str
    attempt: int
    state: str
    retries: int = 0  # automatic ones since a person last started it
    outcome: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    timeout_at: datetime | None = None
    next_eligible_at: datetime | None = None
    output: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    scope: str = ""  # the way to it through blocks; empty at the root
    due_at: datetime | None = None  # from then on it is overdue
    overdue: bool = False

    @property
    def is_open(self) -> bool:
        return self.state in STEP_OPEN


@dataclass(slots=True)
class InstanceState:
    id: UUID
    case_id: str
    mode: str
    deadline_at: datetime
    context: dict[str, Any]
    state: str = InstanceStatus.QUEUED.value
    halt_reason: str = ""
    halt_step_id: str = ""
    resume_step_id: str = ""  # where a halted instance goes on
    completed_at: datetime | None = None
    early: dict[str, Any] = field(default_factory=dict)  # client-driven: completions that came before their turn
    input: Json | None = None  # format 2: what the run was started with
    output: Json | None = None  # format 2: what it gives at its end
    secret: str = ""
    steps: list[StepState] = field(default_factory=list)

    def copy(self) -> "InstanceState":
        """A copy to advance."""
        # One level deep is enough: outputs are added and replaced, and never changed in place.
        copy = InstanceState(*_instance_values(self))
        copy.context, copy.early = dict(self.context), dict(self.early)
        copy.steps = [StepState(*_step_values(step)) for step in self.steps]
        return copy

    def current(self) -> StepState | None:
        return next((step for step in reversed(self.steps) if step.is_open), None)

    def latest(self, step_id: str) -> StepState | None:
        return next((step for step in reversed(self.steps) if step.step_id == step_id), None)

    def visited(self) -> set[str]:
        return {step.step_id for step in self.steps if step.state != StepStatus.SKIPPED}


# All fields in their order. `dataclasses.replace` does the same several times as slowly, and every advance copies.
_step_values = attrgetter(*(one.name for one in fields(StepState)))
_instance_values = attrgetter(*(one.name for one in fields(InstanceState)))


def correlation(instance_id: UUID, step_id: str, attempt: int, *, scope: str = "", secret: str = "") -> UUID:
    """Computed and not random: replay must get the same id. With the run's secret nobody else can compute it."""
    name = f"{scope}/{step_id}/{attempt}" if scope else f"{step_id}/{attempt}"
    if not secret:
        return uuid5(instance_id, name)
    digest = hmac.digest(secret.encode(), f"{instance_id}/{name}".encode(), "sha256")
    return UUID(bytes=digest[:16], version=5)


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
        """As the step's params bind it."""
        found = self.definition.kind(step_id, self.kinds)
        if found is None:
            raise KeyError(step_id)
        return found

    def note(self, step: StepState, *words: str) -> None:
        self.path.append(" ".join([step.step_id, *[word for word in words if word]]))

    def evaluator(self, at: datetime) -> ContextEvaluator:
        scope = EvaluationScope(now=at, case_id=self.state.case_id, definition_id=self.definition.id)
        return ContextEvaluator(self.state.context, scope)
