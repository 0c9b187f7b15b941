"""The advisory of S4 5.8: what a client does next, and what an active run waits for."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.governed import HOLD
from tests.workflows.run_support import READ, URL, act, in_status, retry_waits
from tests.workflows.running import Running
from workflows.definitions.rules.document import read_definition
from workflows.definitions.rules.starters.starters import definition_starter, starters
from workflows.engine.advisory import next_step, remaining
from workflows.engine.state import InstanceState, StepState
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance

KEYS = {"type", "module", "endpoint", "payload_hint", "completion_event"}


def advice(running: Running, instance: WorkflowInstance) -> dict[str, Any]:
    answer = running.cast.api(READ).get(f"{URL}/{instance.id}/next-step")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.unit
def test_the_shape_is_that_of_the_source_document() -> None:
    definition = read_definition(definition_starter("ai_with_confidence_escalation"), definition_id="d")
    images = [str(UUID(int=1))]
    state = InstanceState(
        id=UUID(int=7),
        case_id=str(UUID(int=8)),
        mode="client_driven",
        deadline_at=datetime(2026, 12, 16, tzinfo=UTC),
        state="running",
        context={
            "case_id": str(UUID(int=8)),
            "product_id": str(UUID(int=9)),
            "patient_id": "pat-1",
            "image_check": {"count": 1, "passed": True, "image_ids": images},
        },
        steps=[StepState(id=UUID(int=3), step_id="ai_review", kind="run_ai_review", attempt=1, state="in_progress")],
    )
    assert next_step(definition, kind_table(), state) == {
        "instance_id": str(UUID(int=7)),
        "case_id": str(UUID(int=8)),
        "status": "running",
        "current_step": {
            "id": "ai_review",
            "kind": "run_ai_review",
            "params": {},
            "input_context": {
                "case_id": str(UUID(int=8)),
                "product_id": str(UUID(int=9)),
                "image_check": {"count": 1, "passed": True, "image_ids": images},
            },
            "expected_outputs": ["confidence", "diagnoses", "raw_response_id"],
        },
        "next_action": {
            "type": "call_module",
            "module": "ai-review",
            "endpoint": "POST /reviews",
            "payload_hint": {"images": images, "product_id": str(UUID(int=9))},
            "completion_event": "ai_review.completed",
        },
        "definition_summary": {
            "name": definition.name,
            "remaining_steps": ["ai_review", "branch_confidence", "customer_review", "emit_done"],
        },
    }


@pytest.mark.unit
@pytest.mark.parametrize("name", starters())
def test_no_remaining_step_comes_before_one_that_leads_to_it(name: str) -> None:
    definition = read_definition(definition_starter(name), definition_id="d")
    order = remaining(definition, kind_table(), definition.start_step)
    assert order[0] == definition.start_step
    for place, step_id in enumerate(order):
        for target in definition.step(step_id).transitions.values():
            assert target not in order[: place + 1], (step_id, target)
    halts = {step.id for step in definition.steps.values() if step.kind == "halt"}
    assert set(order) == set(definition.steps) - halts


def test_a_client_driven_run_is_told_step_by_step_until_it_ends(cast: Cast) -> None:
    running = Running(cast)
    instance = running.start(orchestration_mode="client_driven")
    sent = {
        "consent.check.completed": {"granted": True, "missing_types": []},
        "case.images_check.completed": {"count": 3, "passed": True, "image_ids": [str(UUID(int=1))]},
        "ai_review.completed": {"confidence": 0.5, "diagnoses": [], "raw_response_id": "r-1"},
        "human_review.completed": {"decision": "confirm", "reviewer_id": "rev-1"},
    }
    modules = []
    while (found := advice(running, instance))["next_action"] is not None:
        action = found["next_action"]
        assert (set(action), action["type"]) == (KEYS, "call_module")
        modules.append((action["module"], action["endpoint"], found["current_step"]["id"]))
        running.report(instance, action["completion_event"], sent[action["completion_event"]])
    assert modules == [
        ("consent", "POST /consents/check", "consent_gate"),
        ("clinical-api", modules[1][1], "image_check"),
        ("ai-review", "POST /reviews", "ai_review"),
        ("human-review", "POST /human-reviews", "customer_review"),
    ]
    assert (found["status"], found["current_step"]) == ("completed", None)
    assert found["definition_summary"]["remaining_steps"] == []
    requested = [row.event_type for row in running.requests(instance) if row.event_type.endswith(".requested")]
    assert requested == []


def test_an_active_run_is_told_what_is_waited_for(cast: Cast) -> None:
    running = Running(cast)
    assert advice(running, running.start())["next_action"]["type"] == "await_module"
    waiting = advice(running, in_status(running, "waiting_approval"))
    assert (waiting["next_action"]["type"], waiting["current_step"]["id"]) == ("await_review", "customer_review")
    assert advice(running, retry_waits(running))["next_action"]["type"] == "await_retry"
    halted = advice(running, in_status(running, "halted"))
    assert (halted["next_action"]["type"], halted["current_step"]["id"]) == ("intervene", "consent_gate")
    assert set(halted["next_action"]) == KEYS
    queued = advice(running, in_status(running, "queued"))
    assert (queued["next_action"]["type"], queued["current_step"]["id"]) == ("await_start", "consent_gate")


def test_a_held_request_waits_for_its_release(cast: Cast) -> None:
    running = Running(cast, rules=HOLD)
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    assert advice(running, instance)["next_action"]["type"] == "await_release"


def test_an_ended_run_has_nothing_next(cast: Cast) -> None:
    running = Running(cast)
    instance = running.start()
    act(running, instance, "cancel")
    found = advice(running, instance)
    assert (found["status"], found["current_step"], found["next_action"]) == ("cancelled", None, None)


def test_looking_does_not_move_anything(cast: Cast) -> None:
    running = Running(cast)
    instance = running.start()
    for _ in range(2):
        advice(running, instance)
    with every_tenant():
        now = WorkflowInstance.objects.get(id=instance.id)
    assert (now.events, now.emitted) == (instance.events, instance.emitted)
