"""One way to a picture: by tag, of a definition, of a run, and of the run behind a review or an attempt."""

import pytest
from django.template import Context, Template

from reasoncodes.base.tenancy import every_tenant, tenant_scope
from tests.cast import Cast
from tests.workflows.run_support import in_status
from tests.workflows.running import Running
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.runs.models import WorkflowStep
from workflows.runs.selectors.pictures import step_picture


def shown(text: str, **context: object) -> str:
    return Template("{% load pictures %}" + text).render(Context(context))


@pytest.mark.unit
def test_a_definition_has_a_picture_by_tag() -> None:
    drawn = shown('{% workflow_picture document "Triage" %}', document=definition_starter("ai_only"))
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="wf-graph"' in drawn
    assert "Triage" in drawn


def test_the_picture_of_a_run_has_its_states_and_the_way_it_took(cast: Cast) -> None:
    running = Running(cast)
    instance = in_status(running, "waiting_approval")
    with every_tenant():
        drawn = shown("{% run_picture instance %}", instance=instance)
        step = WorkflowStep.objects.get(instance=instance, state="waiting_approval")
        assert shown("{% step_picture step %}", step=step.id) == drawn
        assert shown("{% step_picture step %}", step=None) == ""
    assert 'id="wf-now"' in drawn
    assert "wf-status-waiting_approval" in drawn
    assert "wf-taken" in drawn
    with tenant_scope([cast.other.id]):
        assert step_picture(step.id) == ""
