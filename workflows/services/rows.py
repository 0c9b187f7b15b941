"""Between the engine's values and the rows: how a state is read, and which rows a new state changes."""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from uuid import UUID

from governance.rows import new_row
from workflows.engine.state import InstanceState, StepState
from workflows.models import WorkflowInstance, WorkflowStep

# Where row and value have the same name. `id`, `step_id`, `kind` and `attempt` of a step never change.
INSTANCE_FIELDS = ("status", "halt_reason", "halt_step_id", "resume_step_id", "completed_at", "early", "context")
STEP_FIELDS = (
    "status",
    "outcome",
    "started_at",
    "completed_at",
    "timeout_at",
    "next_eligible_at",
    "output",
    "error",
)


def state_of(instance: WorkflowInstance, steps: Sequence[WorkflowStep]) -> InstanceState:
    return InstanceState(
        id=instance.id,
        case_id=str(instance.case_id),
        mode=instance.mode,
        deadline_at=instance.deadline_at,
        steps=[step_of(row) for row in steps],
        **{name: getattr(instance, name) for name in INSTANCE_FIELDS},
    )


# A row's values in the order of the state's fields, of which one has another name there.
_of_row = attrgetter(*({"kind": "step_kind"}.get(field.name, field.name) for field in fields(StepState)))
_changing = attrgetter(*STEP_FIELDS)


def step_of(row: WorkflowStep) -> StepState:
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
        **{name: getattr(step, name) for name in STEP_FIELDS},
    )


def steps_changed(
    instance: WorkflowInstance, rows: Sequence[WorkflowStep], state: InstanceState
) -> tuple[list[WorkflowStep], list[WorkflowStep]]:
    """The rows to insert and the rows to update; steps are only ever added at the end."""
    known: dict[UUID, WorkflowStep] = {row.id: row for row in rows}
    added, changed = [], []
    for number, step in enumerate(state.steps, start=1):
        row = known.get(step.id)
        if row is None:
            added.append(step_row(instance, step, number))
        elif _changing(row) != _changing(step):
            for name in STEP_FIELDS:
                setattr(row, name, getattr(step, name))
            changed.append(row)
    return added, changed


def differences(stored: InstanceState, replayed: InstanceState) -> list[str]:
    """Where two states disagree, by name; empty: they are the same."""
    found = [
        field.name
        for field in fields(InstanceState)
        if field.name != "steps" and getattr(stored, field.name) != getattr(replayed, field.name)
    ]
    if len(stored.steps) != len(replayed.steps):
        return [*found, "steps"]
    for one, other in zip(stored.steps, replayed.steps, strict=True):
        found += [
            f"{one.step_id}/{one.attempt}.{field.name}"
            for field in fields(StepState)
            if getattr(one, field.name) != getattr(other, field.name)
        ]
    return found
