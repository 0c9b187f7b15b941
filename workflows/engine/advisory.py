"""What comes next for a run, in the shape of S4 5.8, and with which request each try was sent. Pure, and read-only:
nothing here advances a run."""

from collections.abc import Iterable, Mapping
from typing import Any

from workflows.definitions.rules.document import JOIN, TERMINAL, Definition, StepDefinition
from workflows.definitions.states import Mode
from workflows.engine.state import InstanceState, StepState, visible_context
from workflows.kinds.base import ROOT, Json, StepKind
from workflows.kinds.shapes import snapshot
from workflows.runs.states import ENDED, InstanceStatus, StepStatus

Kinds = Mapping[str, StepKind]


def next_step(definition: Definition, kinds: Kinds, state: InstanceState) -> Json:
    here = None if state.state in ENDED else _here(definition, state)
    step = definition.steps.get(here) if here else None
    kind = definition.kind(step.id, kinds) if step else None
    more = {} if state.tokens is None else {"current_steps": _all_current(definition, kinds, state)}
    return more | {
        "instance_id": str(state.id),
        "case_id": state.case_id,
        "status": state.state,
        "current_step": _described(step, kind, visible_context(state)) if step else None,
        "next_action": _action(step, kind, state),
        "definition_summary": {"name": definition.name, "remaining_steps": remaining(definition, kinds, here)},
    }


def _all_current(definition: Definition, kinds: Kinds, state: InstanceState) -> list[Json]:
    """Format 2: every open step, each with its way through blocks and what it waits for."""
    found = []
    for one in state.working():
        step, kind = definition.step(one.step_id), definition.kind(one.step_id, kinds)
        context = visible_context(state, one.scope)
        described = _described(step, kind, context) | {"scope": one.scope, "correlation_id": str(one.id)}
        action = _type(one, kind, state.mode, step.params) if kind else "await_module"
        found.append(described | {"action": action})
    return found


def remaining(definition: Definition, kinds: Kinds, start: str | None) -> list[str]:
    """Every step that may still come, this one first, in topological order. Halt steps are left out."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(step_id: str) -> None:
        seen.add(step_id)
        for target in reversed(_targets(definition, kinds, step_id)):
            if target not in seen:
                visit(target)
        order.append(step_id)

    if start in definition.steps:
        visit(start)
    return order[::-1]


def inputs(definition: Definition, kinds: Kinds, state: InstanceState) -> list[Json]:
    """For each try in order: its params, and the payload of the request that a module got."""
    # The context only grows with completed steps, so what it held at each try can be built up again here. Storing it
    # with every try would keep the same outputs many times.
    then = {name: value for name, value in state.context.items() if name in ROOT}
    found = []
    for one in state.steps:
        step, kind = definition.steps.get(one.step_id), definition.kind(one.step_id, kinds)
        params = step.params if step else {}
        asked = None
        # Format 2: what a request carried is in the outbox; its expressions may have read what is no longer kept.
        plain = kind is not None and kind.prepare is None and state.tokens is None
        if kind and plain and kind.request and state.mode == Mode.ACTIVE and not _of_our_people(kind, params):
            asked = kind.payload(params, then)
        found.append({"params": params, "request": asked})
        if one.output is not None:
            then = then | {one.step_id: one.output}
    return found


def never_visited(definition: Definition, visited: Iterable[str]) -> list[StepDefinition]:
    been = set(visited)
    return [step for step in definition.steps.values() if step.id not in been]


def _here(definition: Definition, state: InstanceState) -> str:
    """The open step; for a halted run the step that resuming would start again; for a queued one the first."""
    current = _current(state)
    if current is not None:
        return current.step_id
    return state.resume_step_id or definition.start_step


def _current(state: InstanceState) -> StepState | None:
    if state.tokens is None:
        return state.current()
    return next(iter(state.working()), None)


def _targets(definition: Definition, kinds: Kinds, step_id: str) -> list[str]:
    # In the order of the kind's outcomes: PostgreSQL's jsonb does not keep the order of keys, and the answer must be
    # the same every time.
    step = definition.step(step_id)
    kind = definition.kind(step_id, kinds)
    outcomes = [*(kind.outcomes if kind else ()), *sorted(step.transitions)]
    inside = [*sorted(step.params.get("branches", {}).values()), step.params.get("body")] if kind and kind.block else []
    after = [step.transitions[one] for one in outcomes if one in step.transitions]
    targets = dict.fromkeys([name for name in inside if name in definition.steps] + after)
    return [name for name in targets if name not in {TERMINAL, JOIN} and not _halts(definition, kinds, name)]


def _halts(definition: Definition, kinds: Kinds, step_id: str) -> bool:
    kind = definition.kind(step_id, kinds)
    return kind is not None and kind.is_terminal


def _described(step: StepDefinition, kind: StepKind | None, context: Json) -> Json:
    return {
        "id": step.id,
        "kind": step.kind,
        "params": step.params,
        "input_context": snapshot(context),
        "expected_outputs": list(kind.output_schema.get("properties", {})) if kind else [],
    }


def _action(step: StepDefinition | None, kind: StepKind | None, state: InstanceState) -> Json | None:
    """`call_module` is the caller's turn; the others say what the run waits for, or that a person must act."""
    if state.state in ENDED:
        return None
    if state.state == InstanceStatus.HALTED:
        return _said("intervene")
    current = _current(state)
    if current is None or step is None or kind is None:
        return _said("await_start")
    return _said(
        _type(current, kind, state.mode, step.params),
        step=step,
        kind=kind,
        context=visible_context(state, current.scope),
    )


def _type(current: StepState, kind: StepKind, mode: str, params: Json) -> str:
    if mode == Mode.CLIENT_DRIVEN:
        return "call_module"
    if current.state == StepStatus.PENDING:
        return "await_retry" if kind.timer is None else "await_time"
    if current.state == StepStatus.WAITING_APPROVAL:
        return "await_review" if _of_our_people(kind, params) else "await_release"
    return "await_module"


def _of_our_people(kind: StepKind, params: Json) -> bool:
    """The step waits in Holdpoint's own review queue."""
    return bool(kind.human_tier) and not params.get("module")


def _said(type_: str, *, step: StepDefinition | None = None, kind: StepKind | None = None, context: Any = None) -> Json:
    """All five members are always present, so that a client need not check which are there."""
    hint = kind.payload(step.params, context) if step and kind and kind.request and not kind.prepare else None
    return {
        "type": type_,
        "module": kind.module if kind else None,
        "endpoint": kind.endpoint if kind else None,
        "payload_hint": hint,
        "completion_event": kind.completion.name if kind and kind.completion else None,
    }
