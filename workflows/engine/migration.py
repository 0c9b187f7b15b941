"""A run goes on under another version of its definition: whether it can, and the move itself, which is an input like
any other."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from governance.conditions import ConditionError, compile_expression
from workflows.definitions.rules.document import Definition, StepDefinition
from workflows.engine.effects import EndReview
from workflows.engine.inputs import Migrated
from workflows.engine.moves import enter, is_sent
from workflows.engine.state import InstanceState, Run, StepState
from workflows.engine.tokens import key_of, step_of, way_to
from workflows.kinds.base import StepKind
from workflows.runs.states import ENDED, InstanceStatus, StepStatus

_PLACE = re.compile(r"\{\{(.*?)\}\}")


def migrated(run: Run, event: Migrated) -> None:
    """`run.definition` is the new one. Steps that keep their name go on as they are; the others are left, and the steps
    that they are mapped to begin anew."""
    state = run.state
    state.context["definition_id"] = run.definition.id
    state.resume_step_id = event.mapping.get(state.resume_step_id, state.resume_step_id)
    if state.halt_step_id not in run.definition.steps:  # resuming looks at the step that halted it
        state.halt_step_id = state.resume_step_id
    if state.tokens is not None:
        halted = state.by_id(state.tokens.halted)
        if halted is not None and halted.step_id not in run.definition.steps:
            state.tokens.halted = None
        state.tokens.waiting = [
            replace(turn, step_id=event.mapping.get(turn.step_id, turn.step_id)) for turn in state.tokens.waiting
        ]
    for step in state.working():
        target = event.mapping.get(step.step_id, step.step_id)
        if target != step.step_id:
            _move(run, step, target, event)


def _move(run: Run, step: StepState, target: str, event: Migrated) -> None:
    # Not by the kind: the new definition may not have the old step any more.
    if step.state == StepStatus.WAITING_APPROVAL:
        run.effects.append(EndReview(step.id, event.reason_code))
    step.state, step.completed_at = StepStatus.CANCELLED, event.at
    step.error = {"reason_code": event.reason_code}
    step.timeout_at = step.next_eligible_at = step.due_at = None
    run.note(step, "left for", target)
    enter(run, target, event.at, scope=step.scope, before=step.step_id)


@dataclass(frozen=True, slots=True)
class Crossing:
    """From one definition to another, for one run."""

    old: Definition
    new: Definition
    kinds: Mapping[str, StepKind]
    mapping: Mapping[str, str]

    def obstacles(self, state: InstanceState) -> list[str]:
        """Why the run cannot go on under the new definition, in words; empty: it can."""
        if state.state in ENDED:
            return ["It has ended."]
        if self.old.format != self.new.format:
            return ["The new version is of another format."]
        stands = self._stands(state)
        found = [f"There is no step `{target}` in the new version." for _, target, _ in stands if not self._has(target)]
        if found:
            return sorted(set(found))
        for step, target, scope in stands:
            found += self._of_step(step, target)
            found += self._of_way(scope)
        return list(dict.fromkeys([*found, *self._unread(state, [target for _, target, _ in stands])]))

    def _stands(self, state: InstanceState) -> list[tuple[StepState | None, str, str]]:
        """Where the run is: open steps (with their row), or where a halted one goes on."""
        at = [(step, self._to(step.step_id), step.scope) for step in state.working()]
        if state.state != InstanceStatus.HALTED:
            return [*at]
        if state.tokens is not None:
            return [*at, *((None, self._to(turn.step_id), turn.scope) for turn in state.tokens.waiting if turn.step_id)]
        return [*at, (None, self._to(state.resume_step_id or self.new.start_step), "")]

    def _to(self, step_id: str) -> str:
        return self.mapping.get(step_id, step_id)

    def _has(self, step_id: str) -> bool:
        return step_id in self.new.steps

    def _of_step(self, step: StepState | None, target: str) -> Iterator[str]:
        if step is None:
            return
        old, new = self.old.kind(step.step_id, self.kinds), self.new.kind(target, self.kinds)
        if old is None or new is None:
            yield f"The kind of `{step.step_id}` is not known any more."
        elif target != step.step_id and old.is_governed:
            yield f"`{step.step_id}` has asked for a side effect; only the same step can take the answer."
        elif target != step.step_id and is_sent(step):
            yield f"`{step.step_id}` waits for an answer from outside; only the same step can take it."
        elif target == step.step_id and _spoken(old) != _spoken(new):
            yield f"`{step.step_id}` is under way, and is another kind of step in the new version."

    def _of_way(self, scope: str) -> Iterator[str]:
        """A block that is under way must be the same in both."""
        for way in way_to(scope):
            name = step_of(key_of(way))
            if self._shape(self.old, name) != self._shape(self.new, name):
                yield f"The block `{name}` is under way, and is not the same in the new version."

    @staticmethod
    def _shape(definition: Definition, name: str) -> StepDefinition | None:
        return definition.steps.get(name)

    def _unread(self, state: InstanceState, starts: list[str]) -> Iterator[str]:
        """Outputs that a step ahead reads, and that nothing gives any more."""
        ahead = _reachable(self.new, starts)
        given = set(state.context) | ({*state.input} if state.input else set()) | ahead
        for way in state.tokens.data if state.tokens else ():
            given |= set(state.tokens.data[way]) if state.tokens else set()
        stood = [one.step_id for one in state.working()] or [state.resume_step_id or self.old.start_step]
        without_it = _reachable(self.old, stood) | given - ahead
        for step_id in sorted(ahead):
            missing = (_roots(self.new.step(step_id).params) & set(self.new.steps)) - given
            if self.old.steps.get(step_id) == self.new.step(step_id):
                missing &= without_it  # what it would not have found without the move either is no obstacle
            for name in sorted(missing):
                yield f"`{step_id}` reads the output of `{name}`, which this run has not been through."


def _spoken(kind: StepKind) -> tuple[Any, ...]:
    """What the answer to a step of this kind looks like."""
    events = tuple(one.name if one else "" for one in (kind.request, kind.completion, kind.failure))
    return (kind.name, kind.effect, events, set(kind.outcomes))


def _reachable(definition: Definition, starts: list[str]) -> set[str]:
    seen, waiting = set(starts), list(starts)
    while waiting:
        step = definition.step(waiting.pop())
        inner = [*step.params.get("branches", {}).values()] if isinstance(step.params.get("branches"), dict) else []
        inner += [step.params["body"]] if isinstance(step.params.get("body"), str) else []
        for target in [*step.transitions.values(), *inner]:
            if target in definition.steps and target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def _roots(params: Any) -> set[str]:
    """The first names of all paths that must have a value. A text that is no expression reads nothing."""
    if isinstance(params, dict):
        return set().union(*(_roots(value) for value in params.values()))
    if isinstance(params, list):
        return set().union(*(_roots(value) for value in params))
    if not isinstance(params, str):
        return set()
    found: set[str] = set()
    for source in _PLACE.findall(params) or [params]:
        try:
            found |= {path[0] for path in compile_expression(source).required_paths}
        except ConditionError:
            continue
    return found
