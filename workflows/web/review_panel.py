"""The case behind a review: where its run stands, as a picture and as a list of steps."""

from typing import Any

from django.utils.safestring import mark_safe

from attempts.models import Attempt, Review
from attempts.web.panels import Panel
from workflows.definitions.layout import layout
from workflows.definitions.svg import svg
from workflows.models import WorkflowInstance, WorkflowStep
from workflows.selectors.run import instance_steps, step_instance
from workflows.selectors.run_console import snapshot_document


def case_panel(review: Review, attempt: Attempt | None) -> Panel | None:
    """For reviews of a workflow's step and for held requests of one; None for an attempt that stands alone."""
    step_id = review.origin_step or (attempt.origin_step if attempt is not None else None)
    instance = step_instance(step_id=step_id) if step_id is not None else None
    if instance is None:
        return None
    steps = instance_steps(instance_id=instance.id)
    context = {"instance": instance, "steps": steps, "picture": _picture(instance, steps), "asking": step_id}
    return Panel("The case so far", "review/panels/case.html", context)


def _picture(instance: WorkflowInstance, steps: list[WorkflowStep]) -> Any:
    """Made by us from classes and escaped text."""
    statuses = {step.step_id: step.status for step in steps}
    title = f"The run of case {instance.case_id}"
    return mark_safe(svg(layout(snapshot_document(instance=instance)), title=title, statuses=statuses))  # noqa: S308
