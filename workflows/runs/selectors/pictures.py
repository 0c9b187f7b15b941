"""Pictures of workflows for definitions, runs and review cards. See also the tags in templatetags/pictures.py; the
styles are holdpoint/states.css and workflows/graph.css."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString, mark_safe

from workflows.definitions.rules.document import TERMINAL
from workflows.definitions.rules.picture import layout
from workflows.definitions.rules.svg import svg
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.console import run_document
from workflows.runs.selectors.run import instance_steps, step_instance
from workflows.runs.states import InstanceStatus


def workflow_picture(document: Any, *, title: str, prefix: str = "wf", **drawn: Any) -> SafeString:
    """The picture of any document, also of an invalid draft. `drawn` are the arguments of `svg`: statuses, taken,
    links."""
    # mark_safe: `svg` writes only its own markup and escapes all text.
    picture = layout(document if isinstance(document, dict) else {})
    return mark_safe(svg(picture, title=title, prefix=prefix, **drawn))  # noqa: S308


def run_picture(
    instance: WorkflowInstance,
    *,
    steps: Sequence[WorkflowStep] | None = None,
    document: Mapping[str, Any] | None = None,
    linked: bool = False,
    prefix: str = "wf",
) -> SafeString:
    """The run's own copy of its definition, coloured by state. With `linked` a step leads to `#step-<its id>`."""
    rows = instance_steps(instance_id=instance.id) if steps is None else list(steps)
    followed = run_document(instance=instance) if document is None else dict(document)
    return workflow_picture(
        followed,
        title=f"The run of case {instance.case_id}",
        prefix=prefix,
        statuses=statuses(instance, rows, followed),
        taken={(step.step_id, step.outcome) for step in rows if step.outcome},
        links={step.step_id: f"#step-{step.step_id}" for step in rows} if linked else None,
    )


def step_picture(step_id: UUID | None, *, prefix: str = "wf") -> SafeString:
    """The picture of the run of a step (an attempt's or a review's `origin_step`); empty if there is none."""
    instance = step_instance(step_id=step_id) if step_id else None
    return mark_safe("") if instance is None else run_picture(instance, prefix=prefix)


def statuses(instance: WorkflowInstance, steps: Sequence[WorkflowStep], document: Mapping[str, Any]) -> dict[str, str]:
    """The newest try of each step; in a completed run the others were skipped."""
    found = {step.step_id: step.state for step in steps}
    if instance.state == InstanceStatus.COMPLETED:
        return dict.fromkeys(document.get("steps", {}), "skipped") | found | {TERMINAL: "completed"}
    return found
