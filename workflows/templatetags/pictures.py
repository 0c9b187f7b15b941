"""`{% load pictures %}`, then `{% workflow_picture document title %}`, `{% run_picture instance %}` or
`{% step_picture review.origin_step %}`. The page loads holdpoint/states.css and workflows/graph.css."""

from typing import Any
from uuid import UUID

from django import template
from django.utils.safestring import SafeString

from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors import pictures

register = template.Library()


@register.simple_tag(name="workflow_picture")
def workflow_picture_tag(document: Any, title: str, prefix: str = "wf") -> SafeString:
    return pictures.workflow_picture(document, title=title, prefix=prefix)


@register.simple_tag(name="run_picture")
def run_picture_tag(instance: WorkflowInstance, prefix: str = "wf") -> SafeString:
    return pictures.run_picture(instance, prefix=prefix)


@register.simple_tag(name="step_picture")
def step_picture_tag(step_id: UUID | None, prefix: str = "wf") -> SafeString:
    return pictures.step_picture(step_id, prefix=prefix)
