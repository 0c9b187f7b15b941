"""Feeds a run's log through the engine again and compares the result with the stored state. Reads only."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from uuid import UUID

import structlog

from governance.retention.selectors.retention import erased_by
from workflows.definitions.rules.document import Definition
from workflows.engine.core import Gate, drive
from workflows.engine.effects import AskGate
from workflows.engine.inputs import GateAnswered, Migrated
from workflows.engine.state import InstanceState, StepState
from workflows.engine.tokens import tokens_first
from workflows.events.models import WorkflowEvent
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.rules import MIGRATED
from workflows.runs.selectors.locked import definition_frozen
from workflows.runs.selectors.migration import first_definition
from workflows.runs.selectors.times import deadline_given
from workflows.runs.services.advance import answer_from_json, input_of
from workflows.runs.services.rows import state_of
from workflows.runs.services.start import case_origin, root_context

log = structlog.get_logger("holdpoint.replay")


@dataclass(frozen=True, slots=True)
class Replayed:
    """`differences` names the fields in which the stored and the replayed state differ; empty if they agree. An erased
    run cannot be replayed; `erased_by` is the erasure order."""

    instance: WorkflowInstance
    events: int
    differences: list[str]
    erased_by: UUID | None = None


def instance_replay(*, instance: WorkflowInstance) -> Replayed:
    if instance.erased_at is not None and (order := erased_by(subject_id=instance.id)):
        return Replayed(instance, 0, [], erased_by=order)
    stored = state_of(instance, list(WorkflowStep.objects.filter(instance=instance).order_by("number")))
    events = list(WorkflowEvent.objects.filter(instance=instance, number__isnull=False).order_by("number"))
    # A gap in the numbers is a deleted or inserted row, even if the states should agree.
    wrong = [] if [event.number for event in events] == list(range(1, instance.events + 1)) else ["events"]
    state: InstanceState | None = None
    try:
        definition = _began(instance, events)
        state = state_blank(instance, definition=definition)
        for event in events:
            if event.event_type == MIGRATED:
                definition = definition_frozen(event.envelope["to"]["sha256"], event.envelope["to"]["definition"])
            state, agrees = _again(definition, state, event)
            wrong += [] if agrees else [f"event {event.number}"]
    except Exception as error:  # an altered log can contain anything, and one bad run must not end the check of all
        log.warning("replay_impossible", instance_id=str(instance.id), error=type(error).__name__)
        wrong.append("log")
    return Replayed(instance, len(events), wrong + (state_differences(stored, state) if state else []))


def _again(definition: Definition, state: InstanceState, event: WorkflowEvent) -> tuple[InstanceState, bool]:
    """The state after the event, and whether its outcome is the one in the log."""
    happened = _migrated(event) if event.event_type == MIGRATED else input_of(event)
    if happened is None:
        return state, True
    answers = [answer_from_json(said) for said in event.facts.get("gates", [])]
    run = drive(definition, kind_table(), state, happened, gate=_recorded(answers))
    return run.state, (run.outcome, run.drift or "") == (event.outcome, event.drift)


def _migrated(event: WorkflowEvent) -> Migrated:
    return Migrated(event.at, event.envelope["mapping"], event.envelope["reason_code"])


def _began(instance: WorkflowInstance, events: Sequence[WorkflowEvent]) -> Definition:
    """The definition with which it began; it may have been migrated since."""
    definition_id, sha256 = first_definition(instance=instance, events=events)
    return definition_frozen(sha256, definition_id)


def state_blank(instance: WorkflowInstance, *, definition: Definition) -> InstanceState:
    """The state of the run before its first input, under this definition."""
    return InstanceState(
        id=instance.id,
        case_id=str(instance.case_id),
        mode=instance.mode,
        deadline_at=deadline_given(instance=instance),
        input=instance.input,
        secret=instance.secret,
        tokens=tokens_first(definition.format),
        context=root_context(case_origin(instance), definition_id=UUID(definition.id), instance_id=instance.id),
    )


def _recorded(answers: list[GateAnswered]) -> Gate:
    waiting = iter(answers)

    def gate(ask: AskGate, state: InstanceState) -> GateAnswered:
        return next(waiting)

    return gate


def state_differences(stored: InstanceState, replayed: InstanceState) -> list[str]:
    """The names of the fields in which two states differ; empty if they are the same."""
    found = [
        field.name
        for field in fields(InstanceState)
        if field.name != "steps" and getattr(stored, field.name) != getattr(replayed, field.name)
    ]
    if len(stored.steps) != len(replayed.steps):
        return [*found, "steps"]
    for one, other in zip(stored.steps, replayed.steps, strict=True):
        found += [
            f"{one.place}/{one.attempt}.{field.name}"
            for field in fields(StepState)
            if getattr(one, field.name) != getattr(other, field.name)
        ]
    return found
