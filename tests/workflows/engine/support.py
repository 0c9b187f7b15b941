"""The engine alone: definitions in a few words, two kinds more, and a run that checks every rule at every input."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from workflows.definitions.rules.document import Definition, read_definition
from workflows.definitions.states import Mode
from workflows.engine.core import drive
from workflows.engine.effects import AskGate, Emit, EndReview, OpenReview, SendRequest, Settle
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
from workflows.engine.state import InstanceState, Run, StepState, correlation
from workflows.events.states import EventOutcome
from workflows.kinds.base import EventType, Json, StepAnswer, StepKind
from workflows.kinds.registry import shipped
from workflows.kinds.shapes import BOOLEAN, CODE, closed
from workflows.runs.states import ENDED, InstanceStatus, InterventionAction, StepStatus

START = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
INSTANCE = UUID(int=7)
CASE = str(UUID(int=8))
_NUMBER: Json = {"type": "integer", "minimum": 0, "maximum": 1000}
_SMALL: Json = {"type": "integer", "minimum": 0, "maximum": 10}


def _event(name: str, direction: str, schema: Json) -> EventType:
    return EventType(name=name, direction=direction, description=name, schema=schema)


def _called(name: str, effect: str) -> StepKind:
    """A module that is called and may fail; a value above ten is no output that the kind promised."""
    return StepKind(
        name=name,
        title=name,
        description=name,
        params_schema=closed({}),
        outcomes=("on_complete", "on_failure"),
        output_schema=closed({"value": _SMALL}),
        effect=effect,
        module=name,
        request=_event(f"{name}.requested", "out", closed({})),
        completion=_event(f"{name}.completed", "in", closed({"value": _NUMBER})),
        failure=_event(f"{name}.failed", "in", closed({"reason_code": CODE, "retryable": BOOLEAN})),
        failure_outcome="on_failure",
        answer=lambda params, payload: StepAnswer(outcome="on_complete", output={"value": payload["value"]}),
    )


# Law 4 needs an effect `once`, which none of the nine kinds has; `call_check` is a check with no effect that may fail.
_MORE = (_called("call_once", "once"), _called("call_check", "none"))
KINDS = {name: kind for name, kind in shipped().items() if 1 in kind.formats} | {kind.name: kind for kind in _MORE}
PARAMS: dict[str, Json] = {
    "gate_on_consent": {"types": ["ai_analysis"]},
    "require_images": {"min_count": 1},
    "request_human_review": {"tier": "customer_clinician"},
    "condition": {"expr": "sample(0.5)"},
    "emit_webhook": {"event_name": "case.told"},
    "set_case_status": {"status": "closed"},
    "halt": {"reason_code": "consent_missing"},
}
COMPLETIONS: dict[str, Json] = {
    "gate_on_consent": {"granted": True, "missing_types": []},
    "require_images": {"count": 1, "passed": True, "image_ids": []},
    "run_ai_review": {"confidence": 0.62, "diagnoses": [], "raw_response_id": "resp-1"},
    "request_human_review": {"decision": "confirm", "reviewer_id": "rev-1"},
    "set_case_status": {"previous_status": "open", "new_status": "closed"},
    "call_once": {"value": 1},
    "call_check": {"value": 1},
}


def step(kind: str, /, to: str | dict[str, str] = "", **fields: Any) -> Json:
    """`to`: where every outcome leads, or each."""
    outcomes = KINDS[kind].outcomes
    targets = to if isinstance(to, dict) else dict.fromkeys(outcomes, to)
    params = PARAMS.get(kind, {}) | fields.pop("params", {})
    return {"kind": kind, "params": params, "transitions": targets} | fields


def definition(steps: dict[str, Json], *, seconds: int = 1_000_000) -> Definition:
    """The first step begins."""
    document = {"name": "x", "start_step": next(iter(steps)), "workflow_timeout_seconds": seconds, "steps": steps}
    return read_definition(document, definition_id=str(UUID(int=9)))


def always(
    verdict: str, reason_code: str = "policy_denied", retry_after: int = 0
) -> Callable[[], tuple[str, str, int]]:
    return lambda: (verdict, "" if verdict == "allow" else reason_code, retry_after)


@dataclass
class Driven:
    """An instance that is only values. `tell` drives it, and holds what the engine did against the rules."""

    definition: Definition
    mode: str = "active"
    say: Callable[[], tuple[str, str, int]] = field(default_factory=lambda: always("allow"))
    now: datetime = START
    context: Json = field(default_factory=lambda: {"case_id": CASE})

    def __post_init__(self) -> None:
        deadline = START + timedelta(seconds=self.definition.workflow_timeout_seconds)
        self.first = InstanceState(INSTANCE, CASE, self.mode, deadline, deepcopy(self.context))
        self.state = deepcopy(self.first)
        self.log: list[tuple[Input, list[GateAnswered], EventOutcome, str]] = []
        self.effects: list[Any] = []
        self.since_a_person: list[UUID] = []  # what was sent since a person last intervened

    # What can be said to it

    def start(self) -> Run:
        return self.tell(Started(self.now))

    def complete(self, payload: Json | None = None, **changes: Any) -> Run:
        """The current step's module, or person, completes it."""
        kind = KINDS[self.here.kind]
        said = COMPLETIONS.get(kind.name, {}) if payload is None else payload
        name = kind.completion.name if kind.completion else "nothing.completed"
        return self.report(name, said | changes, by_person=self.here.state == "waiting_approval")

    def fail(self, *, retryable: bool = True, code: str = "image_quality", **changes: Any) -> Run:
        failure = KINDS[self.here.kind].failure
        payload = {"reason_code": code, "retryable": retryable}
        return self.report(failure.name if failure else "nothing.failed", payload, **changes)

    def report(self, name: str, payload: Json | None, **changes: Any) -> Run:
        correlation_id = changes.pop("correlation_id", self.here.id if self.state.current() else None)
        return self.tell(StepReported(self.now, name, correlation_id, payload, **changes))

    def retry_due(self) -> Run:
        self.now = max(self.now, self.here.next_eligible_at or self.now)
        return self.tell(RetryDue(self.now, self.here.id))

    def tell_retry(self, step: UUID, *, after: int = 0) -> Run:
        return self.tell(RetryDue(self.now + timedelta(seconds=after), step))

    def time_out(self) -> Run:
        self.now = self.here.timeout_at or self.now
        return self.tell(TimedOut(self.now, self.here.id))

    def deadline(self) -> Run:
        self.now = self.state.deadline_at
        return self.tell(DeadlinePassed(self.now))

    def intervene(self, action: str, reason_code: str = "planned_maintenance") -> Run:
        return self.tell(Intervened(self.now, InterventionAction(action), reason_code))

    def gate(self, verdict: str, reason_code: str = "policy_denied", *, step: UUID | None = None) -> Run:
        return self.tell(GateAnswered(self.now, step or self.here.id, verdict, reason_code))

    # What can be asked of it

    @property
    def here(self) -> StepState:
        current = self.state.current()
        assert current is not None, self.state.state
        return current

    @property
    def status(self) -> str:
        return self.state.state

    def sent(self) -> list[str]:
        return [one.event_type for one in self.effects if isinstance(one, SendRequest)]

    def emitted(self) -> list[str]:
        return [one.event_type for one in self.effects if isinstance(one, Emit)]

    def settled(self) -> list[tuple[str, str]]:
        names = {one.id: one.step_id for one in self.state.steps}
        return [(names[one.step], one.result) for one in self.effects if isinstance(one, Settle)]

    def tries(self, step_id: str) -> list[str]:
        return [one.state for one in self.state.steps if one.step_id == step_id]

    # Driving and checking

    def tell(self, happened: Input) -> Run:
        before, answers = deepcopy(self.state), []

        def gate(ask: AskGate, state: InstanceState) -> GateAnswered:
            verdict, reason_code, retry_after = self.say()
            answers.append(GateAnswered(happened.at, ask.step, verdict, reason_code, retry_after))
            return answers[-1]

        run = drive(self.definition, KINDS, self.state, happened, gate=gate)
        assert self.state == before, "advance changed the state that it was given"
        self.log.append((happened, answers, run.outcome, run.drift or ""))
        self.effects += run.effects
        check_move(self, before, run, happened)
        self.state = run.state
        check_state(self.state, self.definition)
        return run

    def replayed(self) -> InstanceState:
        """The log folded from the beginning, with the recorded answers."""
        state = deepcopy(self.first)
        for happened, answers, outcome, drift in self.log:
            waiting = iter(answers)
            run = drive(self.definition, KINDS, state, happened, gate=lambda ask, now, w=waiting: next(w))
            assert (run.outcome, run.drift or "") == (outcome, drift)
            state = run.state
        return state


def check_move(driven: Driven, before: InstanceState, run: Run, happened: Input) -> None:
    """What may change, and what must be said with it."""
    after, person = run.state, isinstance(happened, Intervened)
    assert not any(isinstance(one, AskGate) for one in run.effects)
    if run.outcome != EventOutcome.ADVANCED:
        assert replace(after, early=before.early) == before, "what does not advance changes nothing"
        assert after.early == before.early or (after.mode == Mode.CLIENT_DRIVEN and before.state not in ENDED)
        assert run.effects == []
    if before.state in ENDED or (before.state == InstanceStatus.HALTED and not person):
        assert after == before, f"{before.state} moved by {happened}"
    if isinstance(happened, TimedOut) and run.outcome == EventOutcome.ADVANCED:
        assert after.state == InstanceStatus.HALTED, "a timeout never goes on, and never tries again"
    _check_history(before, after, len(driven.definition.steps))
    _check_lifecycle(before, run)
    _check_sends(driven, run, person=person)
    if driven.mode == Mode.CLIENT_DRIVEN:
        assert all(isinstance(one, Emit) for one in run.effects), "client-driven: nothing is requested"


def _check_history(before: InstanceState, after: InstanceState, length: int) -> None:
    """Steps are only added, at the end; what has ended stays, but for a halt that a person went past."""
    assert len(after.steps) - len(before.steps) <= length, "on a DAG no input enters more steps than there are"
    for old, new in zip(before.steps, after.steps, strict=False):
        assert (old.id, old.step_id, old.attempt, old.retries) == (new.id, new.step_id, new.attempt, new.retries)
        if not old.is_open and new.state != StepStatus.SKIPPED:
            assert old == new
    highest: dict[str, int] = {}
    for one in after.steps:
        assert one.attempt == highest.get(one.step_id, 0) + 1, "attempt numbers grow by one"
        assert one.id == correlation(after.id, one.step_id, one.attempt)
        highest[one.step_id] = one.attempt


def _check_lifecycle(before: InstanceState, run: Run) -> None:
    emitted = [one.event_type for one in run.effects if isinstance(one, Emit)]
    for status, name in (
        (InstanceStatus.HALTED, "workflow.halted"),
        (InstanceStatus.COMPLETED, "workflow.completed"),
        (InstanceStatus.CANCELLED, "workflow.cancelled"),
    ):
        came = run.state.state == status and run.outcome == EventOutcome.ADVANCED
        assert emitted.count(name) == came, (before.state, run.state.state, emitted)
    assert emitted.count("workflow.started") == (not before.steps and bool(run.state.steps))


def _check_sends(driven: Driven, run: Run, *, person: bool) -> None:
    sends = [one.step for one in driven.effects if isinstance(one, SendRequest)]
    assert len(sends) == len(set(sends)), "a request went out twice under one correlation id"
    if person:
        driven.since_a_person = []
    driven.since_a_person += [one.step for one in run.effects if isinstance(one, SendRequest)]
    by_id = {one.id: one for one in run.state.steps}
    once = [by_id[one].step_id for one in driven.since_a_person if KINDS[by_id[one].kind].effect == "once"]
    assert len(once) == len(set(once)), "effect once was sent again by itself"


def check_state(state: InstanceState, definition: Definition) -> None:
    """What holds in every state, whatever led to it."""
    open_steps = [one for one in state.steps if one.is_open]
    going = state.state in {InstanceStatus.RUNNING, InstanceStatus.WAITING_APPROVAL}
    assert len(open_steps) == going, (state.state, open_steps)
    if going:
        held = open_steps[0].state == StepStatus.WAITING_APPROVAL
        assert held == (state.state == InstanceStatus.WAITING_APPROVAL)
        waits_for = (open_steps[0].timeout_at, open_steps[0].next_eligible_at)
        assert held or waits_for.count(None) == 1, "an open step waits for exactly one moment"
    for one in state.steps:
        assert one.is_open or (one.timeout_at, one.next_eligible_at) == (None, None), "what has ended waits for nothing"
    if state.state == InstanceStatus.HALTED:
        assert state.halt_reason
        assert {state.halt_step_id, state.resume_step_id} <= set(definition.steps)
    assert (state.completed_at is not None) == (state.state in ENDED)
    assert _all_done(state) == (state.state == InstanceStatus.COMPLETED)
    for step_id in {one.step_id for one in state.steps}:
        outputs = [one.output for one in state.steps if one.step_id == step_id and one.output is not None]
        assert state.context.get(step_id) == (outputs[-1] if outputs else None)


def _all_done(state: InstanceState) -> bool:
    """Every visited step's latest try is completed, and none of them is a halt."""
    latest = [state.latest(step_id) for step_id in state.visited()]
    return bool(latest) and all(one.state == "completed" and one.kind != "halt" for one in latest if one)


def check_end(driven: Driven) -> None:
    """What must have been said by the time that nothing is open: every attempt settled once, every review ended."""
    assert driven.replayed() == driven.state
    settled = [one.step for one in driven.effects if isinstance(one, Settle)]
    governed = [one for one in driven.state.steps if KINDS[one.kind].is_governed and driven.mode == Mode.ACTIVE]
    assert sorted(settled) == sorted(one.id for one in governed if not one.is_open)
    opened = [one.step for one in driven.effects if isinstance(one, OpenReview)]
    assert len(opened) == len(set(opened))
    ended = {one.step for one in driven.effects if isinstance(one, EndReview)}
    for one in driven.state.steps:
        if one.id in opened:
            assert (one.id in ended) == (not one.is_open and one.state != StepStatus.COMPLETED)
