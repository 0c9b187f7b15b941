"""Replay (law 3 for runs): the log folded again gives what is stored; what was altered is found, and said where."""

from typing import Any

import pytest
from django.db import connection, transaction

from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from tests.tampering import triggers_off
from tests.workflows.world import World, ago, brief, changed
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance
from workflows.runs.services.replay import instance_replay

pytestmark = pytest.mark.django_db
INSTANCE = "UPDATE workflows_workflowinstance SET {} WHERE id = %s"
STEP = "UPDATE workflows_workflowstep SET {} WHERE instance_id = %s AND number = 3"
EVENT = "UPDATE workflows_workflowevent SET {} WHERE instance_id = %s AND number = {}"
ALTERED: dict[str, tuple[str, str]] = {
    "state": (INSTANCE.format("state = 'running', completed_at = NULL"), "state"),
    "end": (INSTANCE.format("completed_at = completed_at + interval '1 second'"), "completed_at"),
    "patient": (INSTANCE.format("""context = context || '{"patient_id": "pat-2"}'"""), "context"),
    "confidence": (INSTANCE.format("""context = jsonb_set(context, '{ai_review,confidence}', '0.99')"""), "context"),
    "step output": (STEP.format("""output = jsonb_set(output, '{confidence}', '0.99')"""), "ai_review/1.output"),
    "step state": (STEP.format("state = 'failed'"), "ai_review/1.state"),
    "step time": (STEP.format("started_at = started_at - interval '1 hour'"), "ai_review/1.started_at"),
    "step gone": ("DELETE FROM workflows_workflowstep WHERE instance_id = %s AND number = 3", "steps"),
    "event payload": (EVENT.format("""envelope = jsonb_set(envelope, '{payload,confidence}', '0.62')""", 4), "state"),
    "event outcome": (EVENT.format("outcome = 'stale'", 3), "event 3"),
    "event drift": (EVENT.format("drift = 'wrong_order'", 3), "event 3"),
    "event correlation": (EVENT.format("correlation_id = gen_random_uuid()", 3), "event 3"),
    "event number": (EVENT.format("number = 9", 4), "events"),
    "event time": (EVENT.format("at = at - interval '1 hour'", 2), "consent_gate/1.completed_at"),
    "event gone": ("DELETE FROM workflows_workflowevent WHERE instance_id = %s AND number = 4", "events"),
    "first event gone": ("DELETE FROM workflows_workflowevent WHERE instance_id = %s AND number = 1", "log"),
    "answer of the gate": (
        EVENT.format("""facts = jsonb_set(facts, '{gates,0,verdict}', '"deny"')""", 3), "halt_step_id",
    ),
    "answers of the gate gone": (EVENT.format("facts = '{}'", 3), "log"),
    "nonsense": (EVENT.format("envelope = '[]'", 3), "log"),
}  # fmt: skip


@pytest.fixture
def completed(cast: Cast) -> WorkflowInstance:
    world = World(cast)
    instance = world.start()
    world.complete(instance)
    world.complete(instance)
    world.complete(instance, confidence=0.93)
    found = world.fresh(instance)
    assert found.state == "completed"
    return found


def alter(sql: str, instance: WorkflowInstance) -> None:
    """Somebody with the owner's rights in the database, and bad intentions."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with triggers_off("workflows_workflowinstance", "workflows_workflowstep", "workflows_workflowevent"):
            cursor.execute(sql, [instance.id])
            assert cursor.rowcount == 1


def differences(instance: WorkflowInstance) -> list[str]:
    with every_tenant():
        return instance_replay(instance=WorkflowInstance.objects.get(id=instance.id)).differences


@pytest.mark.tampers
def test_whatever_is_altered_is_found(completed: WorkflowInstance) -> None:
    assert differences(completed) == []
    for what, (sql, expected) in ALTERED.items():
        with transaction.atomic():
            alter(sql, completed)
            assert expected in differences(completed), what
            transaction.set_rollback(True)
    assert differences(completed) == []


def test_a_run_through_everything_replays(cast: Cast) -> None:
    """Retries, timeouts, gates, late and stale events, drift, people, interventions and a superseding run."""
    world = World(cast, changed("ai_with_confidence_escalation", ai_review={"timeout_seconds": 30}))
    instance = world.start(at=ago(600))
    world.tell(instance, "case.set_status.completed", {"previous_status": "a", "new_status": "b"}, at=ago(599))
    world.complete(instance, at=ago(590))
    world.complete(instance, at=ago(580))
    world.fail(instance, at=ago(570))
    world.tick("step_retries_due", at=ago(500))
    world.tick("steps_time_out")
    world.complete(instance)
    world.intervene(instance, "resume")
    world.intervene(instance, "halt")
    world.intervene(instance, "retry_step")
    world.complete(instance)
    world.judge(instance, "override")
    world.follow()
    found = world.fresh(instance)
    assert (found.state, differences(found)) == ("completed", [])
    with every_tenant():
        outcomes = set(WorkflowEvent.objects.filter(instance=instance).values_list("outcome", flat=True))
    assert outcomes == {"advanced", "stale", "late"}


def test_replay_reads_only(cast: Cast, completed: WorkflowInstance, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(5) as queries:
        assert differences(completed) == []
    assert all(query["sql"].lstrip().startswith("SELECT") for query in queries.captured_queries)


def test_a_queued_run_replays_before_and_after_its_start(cast: Cast) -> None:
    world = World(cast, brief())
    world.caps(max_concurrency=0)
    instance = world.start()
    assert (instance.state, differences(instance)) == ("queued", [])
    world.caps(max_concurrency=1)
    world.tick("instances_dispatch")
    assert (world.fresh(instance).state, differences(instance)) == ("running", [])
