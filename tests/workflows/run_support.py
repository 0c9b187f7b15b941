"""Words of the tests of runs: an instance in every status, and the doors to it."""

from typing import Any
from uuid import UUID

from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.workflows.running import Running
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance, WorkflowIntervention, WorkflowStep

URL = "/api/v1/workflow-instances"
EVENTS = "/api/v1/events"
BULK = f"{URL}/bulk-interventions"
REASON = {"reason_code": "planned_maintenance"}
READ = "orchestrator:read-instances"
INTERVENE = "orchestrator:intervene"
ACTIONS = ("retry-step", "cancel", "supersede", "halt", "resume")
FAILED = {"reason_code": "ai_review_failed", "retryable": True}


def full(running: Running) -> None:
    """No room for another run: the next one queues."""
    with every_tenant():
        Organization.objects.filter(id=running.organization.id).update(max_concurrency=1)


def in_status(running: Running, status: str) -> WorkflowInstance:
    """A run of `ai_with_confidence_escalation` that got there by what really happens."""
    if status == "queued":
        running.start()
        full(running)
    instance = running.start()
    if status == "halted":
        running.answer(instance, granted=False, missing_types=["ai_analysis"])
    if status in {"waiting_approval", "completed"}:
        confidence = 0.62 if status == "waiting_approval" else 0.93
        running.answer(instance)
        running.answer(instance)
        running.answer(instance, confidence=confidence)
    if status == "cancelled":
        act(running, instance, "cancel")
    found = running.fresh(instance)
    assert found.state == status
    return found


def retry_waits(running: Running) -> WorkflowInstance:
    """Running, while its AI review waits for its automatic retry."""
    instance = running.start()
    running.answer(instance)
    running.answer(instance)
    running.report(instance, "ai_review.failed", FAILED)
    current = running.current(instance)
    assert current is not None
    assert current.state == "pending"
    return running.fresh(instance)


def act(running: Running, instance: WorkflowInstance, action: str, client: Any = None, **body: Any) -> Any:
    caller = client or running.cast.api(INTERVENE)
    return caller.post(f"{URL}/{instance.id}/{action}", REASON | body, format="json")


def steps(instance: WorkflowInstance) -> list[tuple[str, int, str]]:
    with every_tenant():
        rows = WorkflowStep.objects.filter(instance=instance).order_by("number")
        return list(rows.values_list("step_id", "attempt", "state"))


def log(instance: WorkflowInstance) -> list[tuple[str, str]]:
    with every_tenant():
        rows = WorkflowEvent.objects.filter(instance=instance).order_by("id")
        return list(rows.values_list("event_type", "outcome"))


def interventions(instance: WorkflowInstance) -> list[WorkflowIntervention]:
    with every_tenant():
        return list(WorkflowIntervention.objects.filter(instance=instance).select_related("note").order_by("id"))


def entries(subject: UUID) -> list[LedgerEntry]:
    with every_tenant():
        return list(LedgerEntry.objects.filter(subject_id=subject).order_by("id"))


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.order_by("id").values_list("kind", flat=True))
