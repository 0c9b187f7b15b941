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

from governance.conditions import Dialect, EvaluationScope
from workflows.definitions.rules.document import Definition, StepDefinition
from workflows.engine.effects import Effect
from workflows.engine.tokens import Tokens, Turn, block_key, key_of, name_of, way_to
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

    @property
    def place(self) -> str:
        """Its name with the way to it."""
        return f"{self.scope}/{self.step_id}" if self.scope else self.step_id

    @property
    def key(self) -> str:
        """Of the block that it is, if it is one."""
        return block_key(self.scope, self.step_id, self.attempt)


@dataclass(slots=True)
class InstanceState:
    """`steps`: of a run of format 1 all tries; of format 2 (`tokens`) the open ones and those that an input is about.
    What has ended is not needed to go on, so an advance costs the same however long the run is."""

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
    tokens: Tokens | None = None  # None: format 1
    steps: list[StepState] = field(default_factory=list)

    def copy(self) -> "InstanceState":
        """A copy to advance."""
        # One level deep is enough: outputs are added and replaced, and never changed in place.
        copy = InstanceState(*_instance_values(self))
        copy.context, copy.early = dict(self.context), dict(self.early)
        copy.tokens = self.tokens.copy() if self.tokens else None
        copy.steps = [StepState(*_step_values(step)) for step in self.steps]
        return copy

    def current(self) -> StepState | None:
        return next((step for step in reversed(self.steps) if step.is_open), None)

    def latest(self, step_id: str) -> StepState | None:
        return next((step for step in reversed(self.steps) if step.step_id == step_id), None)

    def visited(self) -> set[str]:
        return {step.step_id for step in self.steps if step.state != StepStatus.SKIPPED}

    def by_id(self, step: UUID | None) -> StepState | None:
        return next((one for one in self.steps if one.id == step), None)

    def open_by_id(self, step: UUID | None) -> StepState | None:
        return next((one for one in self.steps if one.id == step and one.is_open), None)

    def is_block(self, step: StepState) -> bool:
        """It holds other steps and does nothing itself."""
        return self.tokens is not None and step.key in self.tokens.blocks

    def working(self) -> list[StepState]:
        """The open steps without the blocks that hold them."""
        return [step for step in self.steps if step.is_open and not self.is_block(step)]

    def next_try(self, step_id: str, scope: str) -> int:
        """Counts one more try of the step in its scope."""
        if self.tokens is None:
            before = self.latest(step_id)
            return before.attempt + 1 if before else 1
        tries = self.tokens.tries.setdefault(scope, {})
        tries[step_id] = tries.get(step_id, 0) + 1
        return tries[step_id]

    def keep(self, step: StepState, output: Json) -> None:
        """The step's output, for the steps that may read it."""
        if self.tokens is None or not step.scope:
            self.context[step.step_id] = output
        else:
            self.tokens.data.setdefault(step.scope, {})[step.step_id] = output


def visible_context(state: InstanceState, scope: str = "") -> Json:
    """What a step of this scope may read: the run's roots and input, its item and round, and the outputs of the root
    and of the scopes on its way."""
    tokens = state.tokens
    if tokens is None:
        return state.context
    seen = state.context | {"input": state.input or {}}
    for way in way_to(scope):
        seen |= tokens.data.get(way, {})
        block = tokens.blocks.get(key_of(way))
        if block is not None and block.items is not None:
            seen["item"] = block.items[int(name_of(way)) - 1]
        elif block is not None and not block.names:
            seen["round"] = int(name_of(way))
    return seen


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
    following: list[tuple[Turn, datetime]] = field(default_factory=list)  # what comes next, the first first

    @property
    def tokens(self) -> Tokens:
        if self.state.tokens is None:
            raise ValueError("a run of format 1 has no blocks")
        return self.state.tokens

    def step(self, current: StepState) -> StepDefinition:
        return self.definition.step(current.step_id)

    def kind(self, step_id: str) -> StepKind:
        """As the step's params bind it."""
        found = self.definition.kind(step_id, self.kinds)
        if found is None:
            raise KeyError(step_id)
        return found

    def note(self, step: StepState, *words: str) -> None:
        self.path.append(" ".join([step.place, *[word for word in words if word]]))

    def context(self, step: StepState) -> Json:
        return visible_context(self.state, step.scope)

    def evaluator(self, scope: str, at: datetime) -> ContextEvaluator:
        moment = EvaluationScope(now=at, case_id=self.state.case_id, definition_id=self.definition.id)
        dialect = Dialect.EXTENDED if self.definition.format > 1 else Dialect.PLAIN
        return ContextEvaluator(visible_context(self.state, scope), moment, dialect)

    def step_add(self, step_id: str, scope: str, **values: Any) -> StepState:
        """A new try of the step."""
        # The number of the try is part of the correlation id, so that an answer to an earlier try never fits this one.
        attempt = self.state.next_try(step_id, scope)
        step = StepState(
            id=correlation(self.state.id, step_id, attempt, scope=scope, secret=self.state.secret),
            step_id=step_id,
            kind=self.definition.step(step_id).kind,
            attempt=attempt,
            scope=scope,
            **values,
        )
        self.state.steps.append(step)
        if self.state.tokens is not None:
            self.state.tokens.count += 1
        return step
