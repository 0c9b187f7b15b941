"""Runs of format 2 as the database would keep them: before each input the state is built from stored rows again, with
only what an advance reads, and the same input goes to a state that has everything. Both must agree."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tests.workflows.engine.support import COMPLETIONS, PARAMS, START, always
from tests.workflows.engine.support import KINDS as KINDS_1
from workflows.definitions.rules.document import Definition, read_definition
from workflows.engine.core import drive
from workflows.engine.effects import AskGate, EndReview, OpenReview, SendRequest, Settle
from workflows.engine.inputs import GateAnswered, Input, Intervened, RetryDue, Started, StepReported, TimedOut
from workflows.engine.state import InstanceState, Run, StepState
from workflows.engine.tokens import Tokens, key_of, tokens_json, tokens_read, way_to
from workflows.events.states import EventOutcome
from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.registry import shipped
from workflows.kinds.shapes import BOOLEAN, CODE, closed
from workflows.runs.states import ENDED, InstanceStatus, InterventionAction, StepStatus

INSTANCE, CASE, SECRET = UUID(int=7), str(UUID(int=8)), "s" * 32
_VALUE: Json = closed({"value": {"type": "integer", "minimum": 0, "maximum": 10}})
_FAILURE: Json = closed({"reason_code": CODE, "retryable": BOOLEAN})


def _event(name: str, direction: str, schema: Json) -> EventType:
    return EventType(name=name, direction=direction, description=name, schema=schema)


def _kind(name: str, **fields: Any) -> StepKind:
    given: dict[str, Any] = {
        "title": name,
        "description": name,
        "params_schema": closed({}),
        "outcomes": ("on_complete",),
        "output_schema": _VALUE,
        "effect": "none",
        "completion": _event(f"{name}.completed", "in", _VALUE),
        "failure": _event(f"{name}.failed", "in", _FAILURE),
        "answer": lambda params, payload: StepAnswer(outcome="on_complete", output={"value": payload["value"]}),
    }
    return StepKind(name=name, **(given | fields))


# `pay` has an effect and no outcome for its failure; `watch` only waits, and has an outcome when that took too long.
_OWN = (
    _kind("pay", effect="idempotent", request=_event("pay.requested", "out", closed({}))),
    _kind("watch", waits=True, outcomes=("on_complete", "on_timeout"), timeout_outcome="on_timeout"),
    _kind("look_up", performed=True, prepare=lambda params, context, evaluator: {"seen": sorted(context)}),
)
KINDS = {**shipped(), **KINDS_1} | {kind.name: kind for kind in _OWN}
ANSWERS = COMPLETIONS | {"pay": {"value": 1}, "watch": {"value": 1}, "look_up": {"value": 1}}


def step(kind: str, to: str | dict[str, str] = "", **fields: Any) -> Json:
    targets = to if isinstance(to, dict) else dict.fromkeys(KINDS[kind].outcomes, to)
    params = PARAMS.get(kind, {}) | fields.pop("params", {})
    return {"kind": kind, "params": params, "transitions": targets} | fields


def definition(steps: dict[str, Json], *, seconds: int = 1_000_000, **fields: Any) -> Definition:
    document = {"format": 2, "name": "x", "start_step": next(iter(steps)), "steps": steps}
    given = document | {"workflow_timeout_seconds": seconds} | fields
    return read_definition(given, definition_id=str(UUID(int=9)))


@dataclass
class Stored:
    """The rows of a run."""

    instance: InstanceState
    tokens: str
    steps: dict[UUID, StepState] = field(default_factory=dict)

    def loaded(self, about: UUID | None) -> InstanceState:
        """What an advance reads: open steps, the one that is answered, the halt step at which it stands."""
        tokens = tokens_read(json.loads(self.tokens))
        assert tokens is not None
        wanted = {about, tokens.halted}
        steps = [deepcopy(one) for one in self.steps.values() if one.is_open or one.id in wanted]
        return replace(deepcopy(self.instance), tokens=tokens, steps=steps)

    def write(self, state: InstanceState) -> None:
        self.tokens = json.dumps(tokens_json(state.tokens))
        for one in state.steps:
            self.steps[one.id] = deepcopy(one)
        self.instance = replace(deepcopy(state), tokens=None, steps=[])


@dataclass
class Driven:
    definition: Definition
    say: Callable[[], tuple[str, str, int]] = field(default_factory=lambda: always("allow"))
    now: datetime = START
    given: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        deadline = START + timedelta(seconds=self.definition.workflow_timeout_seconds)
        first = InstanceState(INSTANCE, CASE, "active", deadline, {"case_id": CASE}, input=self.given, secret=SECRET)
        self.state = replace(first, tokens=Tokens())
        self.stored = Stored(first, json.dumps(tokens_json(Tokens())))
        self.effects: list[Any] = []
        self.log: list[Input] = []
        self.read: list[int] = []  # how many steps each advance read

    # What can be said to it

    def start(self) -> Run:
        return self.tell(Started(self.now))

    def complete(self, which: str | StepState = "", **changes: Any) -> Run:
        one = self.at(which)
        completion = KINDS[one.kind].completion
        name = completion.name if completion else "nothing.completed"
        payload = ANSWERS.get(one.kind, {}) | changes
        return self.tell(StepReported(self.now, name, one.id, payload, by_person=one.state == "waiting_approval"))

    def fail(self, which: str | StepState = "", *, retryable: bool = False) -> Run:
        one = self.at(which)
        failure = KINDS[one.kind].failure
        payload = {"reason_code": "image_quality", "retryable": retryable}
        return self.tell(StepReported(self.now, failure.name if failure else "nothing.failed", one.id, payload))

    def due(self, which: str | StepState = "") -> Run:
        one = self.at(which)
        self.now = max(self.now, one.next_eligible_at or self.now)
        return self.tell(RetryDue(self.now, one.id))

    def time_out(self, which: str | StepState = "") -> Run:
        one = self.at(which)
        self.now = max(self.now, one.timeout_at or self.now)
        return self.tell(TimedOut(self.now, one.id))

    def intervene(self, action: str, step: UUID | None = None) -> Run:
        return self.tell(Intervened(self.now, InterventionAction(action), "planned_maintenance", step))

    # What can be asked of it

    @property
    def tokens(self) -> Tokens:
        assert self.state.tokens is not None
        return self.state.tokens

    def at(self, which: str | StepState) -> StepState:
        """The open step of this id, or with this way in front of it; or the only one."""
        if isinstance(which, StepState):
            return which
        found = [one for one in self.state.working() if which in {"", one.step_id, f"{one.scope}/{one.step_id}"}]
        assert len(found) == 1, (which, [f"{one.scope}/{one.step_id}" for one in self.state.working()])
        return found[0]

    def here(self) -> list[str]:
        return sorted(f"{one.scope}/{one.step_id}" if one.scope else one.step_id for one in self.state.working())

    def row(self, step_id: str) -> StepState:
        return [one for one in self.state.steps if one.step_id == step_id][-1]

    def ends(self, step_id: str) -> list[str]:
        return [one.state for one in self.state.steps if one.step_id == step_id]

    # Driving and checking

    def tell(self, happened: Input) -> Run:
        answers: list[GateAnswered] = []

        def gate(ask: AskGate, state: InstanceState) -> GateAnswered:
            assert state.open_by_id(ask.step) is not None, "the gate would open an attempt for a step that has ended"
            verdict, reason_code, retry_after = self.say()
            answers.append(GateAnswered(happened.at, ask.step, verdict, reason_code, retry_after))
            return answers[-1]

        about = getattr(happened, "correlation_id", None) or getattr(happened, "step", None)
        loaded = self.stored.loaded(about)
        self.read.append(len(loaded.steps))
        run = drive(self.definition, KINDS, loaded, happened, gate=gate)
        again = iter(answers)
        whole = drive(self.definition, KINDS, self.state, happened, gate=lambda ask, state: next(again))
        assert next(again, None) is None, "the whole state asks the gate as the loaded one did"
        assert (whole.outcome, whole.drift, whole.path) == (run.outcome, run.drift, run.path)
        assert whole.effects == run.effects
        if run.outcome == EventOutcome.ADVANCED:
            self.stored.write(run.state)
        else:
            assert (run.effects, run.state) == ([], loaded), "what does not advance changes nothing"
        _check_history(self.state, whole.state)
        self.state = whole.state
        self.log.append(happened)
        self.effects += run.effects
        assert list(self.stored.steps.values()) == self.state.steps
        assert self.stored.loaded(None).tokens == self.state.tokens
        assert replace(self.stored.instance, tokens=None) == replace(self.state, tokens=None, steps=[])
        check_state(self.state)
        return run


def _check_history(before: InstanceState, after: InstanceState) -> None:
    """Steps are only added; what has ended stays, but for a halt that a person went past. So no join fires twice."""
    for old, new in zip(before.steps, after.steps, strict=False):
        assert (old.id, old.step_id, old.scope, old.attempt) == (new.id, new.step_id, new.scope, new.attempt)
        if not old.is_open and new.state != StepStatus.SKIPPED:
            assert old == new
    assert len({one.id for one in after.steps}) == len(after.steps)
    assert after.tokens is not None
    assert after.tokens.count == len(after.steps)


def check_state(state: InstanceState) -> None:
    """No token is lost and none is doubled, whatever happened."""
    tokens = state.tokens
    assert tokens is not None
    open_steps = [one for one in state.steps if one.is_open]
    places = [one.scope for one in open_steps]
    if state.state == InstanceStatus.HALTED:
        places += [turn.scope for turn in tokens.waiting]
        assert tokens.waiting
        assert state.working() == []
    else:
        assert not tokens.waiting
    gone = state.state in ENDED or state.state == InstanceStatus.QUEUED
    assert places.count("") == (not gone), (state.state, places)
    for key, block in tokens.blocks.items():
        holder = [one for one in open_steps if one.key == key]
        assert len(holder) == 1, f"the block {key} has one open step of its own"
        names = block.names or [str(number + 1) for number in range(block.begun)]
        going = [name for name in names if name not in block.ends]
        if not block.names and block.items is None:
            going = [str(block.begun)]  # a loop: only its last round
        assert going, f"the block {key} has ended"
        for name in going:
            assert places.count(f"{key}:{name}") == 1, (key, name, places)
    kept = {*tokens.data, *tokens.tries} - {""}
    assert {key_of(scope) for scope in kept} <= set(tokens.blocks), "what is inside a block goes with it"
    for scope in places:
        assert all(key_of(way) in tokens.blocks for way in way_to(scope)), scope
    for one in open_steps:
        waits_for = (one.timeout_at, one.next_eligible_at)
        assert state.is_block(one) or one.state == "waiting_approval" or waits_for.count(None) == 1, one
    for one in state.steps:
        assert one.is_open or one.timeout_at is None
    going_on = {one.state == StepStatus.WAITING_APPROVAL for one in state.working()}
    if state.state in {InstanceStatus.RUNNING, InstanceStatus.WAITING_APPROVAL}:
        assert (going_on == {True}) == (state.state == InstanceStatus.WAITING_APPROVAL)
    if gone:
        assert (tokens.blocks, tokens.data, open_steps) == ({}, {}, [])


def check_end(driven: Driven) -> None:
    """Every attempt was settled once, every review ended."""
    settled = [one.step for one in driven.effects if isinstance(one, Settle)]
    governed = [one for one in driven.state.steps if KINDS[one.kind].is_governed]
    assert sorted(settled) == sorted(one.id for one in governed if not one.is_open)
    sent = [one.step for one in driven.effects if isinstance(one, SendRequest)]
    assert len(sent) == len(set(sent)), "a request went out twice"
    for one in driven.effects:
        contradicted = isinstance(one, Settle) and one.reason_code == "outcome_unknown"
        if isinstance(one, Settle) and one.result in {"unknown", "withdrawn"} and not contradicted:
            assert (one.result == "unknown") == (one.step in sent), "what was sent is not known, the rest never was"
    opened = {one.step for one in driven.effects if isinstance(one, OpenReview)}
    ended = {one.step for one in driven.effects if isinstance(one, EndReview)}
    for one in driven.state.steps:
        if one.id in opened:
            assert (one.id in ended) == (not one.is_open and one.state != StepStatus.COMPLETED)
