"""What a run's frozen definition says about it: the next step, and the input of each try. Reads only."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from workflows.engine.advisory import inputs, never_visited, next_step
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import definition_of
from workflows.runs.selectors.run import instance_get, instance_steps
from workflows.runs.services.rows import state_of
from workflows.runs.states import InstanceStatus


@dataclass(frozen=True, slots=True)
class StepShown:
    """One try; or, in a completed run, a step that was never entered (`row` is None)."""

    step_id: str
    step_kind: str
    state: str
    row: WorkflowStep | None
    input: dict[str, Any] | None


def instance_next_step(*, instance_id: UUID) -> dict[str, Any]:
    instance = instance_get(instance_id=instance_id)
    return next_step_of(instance, instance_steps(instance_id=instance_id))


def next_step_of(instance: WorkflowInstance, steps: list[WorkflowStep]) -> dict[str, Any]:
    return next_step(definition_of(instance), kind_table(), state_of(instance, steps))


def steps_shown(*, instance: WorkflowInstance) -> list[StepShown]:
    return steps_of(instance, instance_steps(instance_id=instance.id))


def steps_of(instance: WorkflowInstance, rows: list[WorkflowStep]) -> list[StepShown]:
    """All tries in order; for a completed run also the steps that were never entered, as skipped."""
    definition = definition_of(instance)
    asked = inputs(definition, kind_table(), state_of(instance, rows))
    found = [
        StepShown(row.step_id, row.step_kind, row.state, row, given) for row, given in zip(rows, asked, strict=True)
    ]
    if instance.state == InstanceStatus.COMPLETED:
        skipped = never_visited(definition, {row.step_id for row in rows})
        found += [StepShown(step.id, step.kind, "skipped", None, None) for step in skipped]
    return found
