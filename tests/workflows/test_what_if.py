"""What would have happened: finished runs under another version, with their recorded inputs and answers."""

from copy import deepcopy
from typing import Any

import pytest
from django.utils import timezone

from attempts.lifecycle.models import Attempt
from governance.ledger.models import LedgerEntry
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.workflows.run_support import act
from tests.workflows.world import World
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.services.create import definition_create
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.runs.models import WorkflowInstance

NAME = "ai_with_confidence_escalation"


@pytest.fixture
def world(cast: Cast) -> World:
    """Three finished runs: two completed, of which one with a person, and one that a person cancelled."""
    world = World(cast)
    for confidence in (0.93, 0.62):
        run = world.start()
        world.complete(run)
        world.complete(run)
        world.complete(run, confidence=confidence)
        if confidence < 0.7:
            world.judge(run)
            world.follow()
        assert world.fresh(run).state == "completed"
    halted = world.start()
    world.complete(halted, granted=False, missing_types=["ai_analysis"])
    act(world, halted, "cancel")
    return world


def draft(world: World, document: dict[str, Any]) -> WorkflowDefinition:
    with every_tenant():
        return definition_create(
            actor=world.operator,
            at=timezone.now(),
            organization=world.organization,
            document=document,
            slug="derm",
            product_id=world.product.id,
        )


def asked(world: World, document: dict[str, Any], last: int = 20) -> Any:
    url = f"/api/v1/workflow-definitions/{draft(world, document).id}/what-if"
    answer = world.cast.api("orchestrator:read-instances").post(url, {"last": last}, format="json")
    assert answer.status_code == 200, answer.json()
    return answer.json()


def stored() -> list[int]:
    with every_tenant():
        return [model.objects.count() for model in (WorkflowInstance, WorkflowEvent, OutboxEvent, Attempt, LedgerEntry)]


def test_the_same_document_changes_no_run_and_asking_stores_nothing(world: World) -> None:
    same, reader = draft(world, definition_starter(NAME)), world.cast.api("orchestrator:read-instances")
    before = stored()
    url = f"/api/v1/workflow-definitions/{same.id}/what-if"
    answer = reader.post(url, {"last": 20}, format="json")
    assert (answer.status_code, answer.json()) == (200, {"runs": 3, "same": 3, "different": []})
    assert stored() == before


def test_another_threshold_shows_the_runs_that_it_would_have_sent_elsewhere(world: World) -> None:
    document = deepcopy(definition_starter(NAME))
    document["steps"]["branch_confidence"]["expr"] = "ai_review.confidence < 0.5"
    found = asked(world, document)
    assert (found["runs"], found["same"]) == (3, 2)
    (one,) = found["different"]
    assert one["differs"] == ["path"]
    assert "customer_review on_complete" in one["was"]["path"]
    assert "customer_review on_complete" not in one["would_be"]["path"]
    assert one["would_be"]["end"] == "completed"


def test_a_step_that_nobody_was_asked_about_is_named_and_not_made_up(world: World) -> None:
    document = deepcopy(definition_starter(NAME))
    document["steps"]["second_look"] = {
        "kind": "request_human_review",
        "params": {"tier": "customer_clinician"},
        "transitions": {"on_complete": "ai_review"},
    }
    document["steps"]["image_check"]["transitions"]["on_pass"] = "second_look"
    found = asked(world, document, last=3)
    assert found["same"] == 1
    for one in found["different"]:
        assert (one["would_be"]["end"], one["would_be"]["waits_for"]) == ("waits", ["second_look"])


def test_a_draft_with_faults_answers_with_its_findings(world: World) -> None:
    url = f"/api/v1/workflow-definitions/{draft(world, {'name': 'Faulty'}).id}/what-if"
    answer = world.cast.api("orchestrator:read-instances").post(url, {"last": 1}, format="json")
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[1]) == (422, "definition-invalid")


def test_the_page_beside_the_diff_shows_them(world: World) -> None:
    same = draft(world, definition_starter(NAME))
    page = world.cast.console(world.cast.operator).get(f"/admin/workflows/workflowdefinition/{same.id}/what-if/")
    assert page.status_code == 200
    assert "<strong>3</strong> of 3 runs" in page.content.decode()
