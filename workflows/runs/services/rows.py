"""A run and its steps between the database and the engine: rows to values, and what an advance changed to rows."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from uuid import UUID

from governance.sql.statements import new_row
from workflows.engine.state import InstanceState, StepState
from workflows.engine.tokens import tokens_json, tokens_read
from workflows.runs.models import WorkflowInstance, WorkflowStep

# Fields that have the same name in the row and in the engine's value, and that an advance may change. `id`, `step_id`,
# `kind`, `attempt` and `retries` of a step never change.
INSTANCE_FIELDS = (
    *("state", "halt_reason", "halt_step_id", "resume_step_id", "deadline_at", "completed_at", "early", "context"),
)
STEP_FIELDS = (
    "state",
    "outcome",
    "started_at",
    "completed_at",
    "timeout_at",
    "next_eligible_at",
    "output",
    "error",
    "due_at",
    "overdue",
)
# What only a run of format 2 has, and what it was started with.
INPUT_FIELDS = ("input", "secret")


# Only a run of format 2 has these; for the others they are not even written.
OF_FORMAT_2 = ("tokens", "output")


def state_of(instance: WorkflowInstance, steps: Sequence[WorkflowStep]) -> InstanceState:
    return InstanceState(
        id=instance.id,
        case_id=str(instance.case_id),
        mode=instance.mode,
        steps=[_step_of(row) for row in steps],
        output=instance.output,
        tokens=tokens_read(instance.tokens) if instance.tokens else None,
        **{name: getattr(instance, name) for name in (*INSTANCE_FIELDS, *INPUT_FIELDS)},
    )


def instance_change(instance: WorkflowInstance, state: InstanceState) -> tuple[str, ...]:
    """Gives the row what the engine reached; returns which of its fields have to be written."""
    for name in INSTANCE_FIELDS:
        setattr(instance, name, getattr(state, name))
    if state.tokens is None:
        return INSTANCE_FIELDS
    instance.tokens, instance.output = tokens_json(state.tokens), state.output
    return (*INSTANCE_FIELDS, *OF_FORMAT_2)


# A row's values in the order of the value's fields; `kind` is called `step_kind` in the row. Positional, because every
# advance converts all steps of its run.
_of_row = attrgetter(*({"kind": "step_kind"}.get(field.name, field.name) for field in fields(StepState)))
_changing = attrgetter(*STEP_FIELDS)


def _step_of(row: WorkflowStep) -> StepState:
    return StepState(*_of_row(row))


def step_row(instance: WorkflowInstance, step: StepState, number: int) -> WorkflowStep:
    return new_row(
        WorkflowStep,
        id=step.id,
        instance_id=instance.id,
        number=number,
        step_id=step.step_id,
        step_kind=step.kind,
        attempt=step.attempt,
        retries=step.retries,
        scope=step.scope,
        **{name: getattr(step, name) for name in STEP_FIELDS},
    )


def steps_changed(
    instance: WorkflowInstance, rows: Sequence[WorkflowStep], state: InstanceState
) -> tuple[list[WorkflowStep], list[WorkflowStep]]:
    """The rows to insert and the rows to update. The engine only appends steps, so their numbers do not change."""
    known: dict[UUID, WorkflowStep] = {row.id: row for row in rows}
    new = sum(step.id not in known for step in state.steps)
    # Of a run of format 2 not all earlier steps were read, but it knows how many there are.
    number = (state.tokens.count if state.tokens else len(state.steps)) - new
    added, changed = [], []
    for step in state.steps:
        row = known.get(step.id)
        if row is None:
            number += 1
            added.append(step_row(instance, step, number))
        elif _changing(row) != _changing(step):
            for name in STEP_FIELDS:
                setattr(row, name, getattr(step, name))
            changed.append(row)
    return added, changed
