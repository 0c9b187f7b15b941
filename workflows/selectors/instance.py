"""Reading instances, their steps, their log; and the one way to lock one."""

from uuid import UUID

from governance.selectors import tenant_get
from reasoncodes.errors import NotFound
from workflows.models import WorkflowInstance, WorkflowStep
from workflows.states import STEP_OPEN


def instance_lock(*, instance_id: UUID) -> WorkflowInstance:
    """FOR NO KEY UPDATE, first in the lock order; with organization and contract, which no advance can do without."""
    rows = WorkflowInstance.objects.select_for_update(no_key=True, of=("self",)).select_related(
        "organization", "contract"
    )
    found = rows.filter(id=instance_id).first()
    if found is None:
        tenant_get(WorkflowInstance, instance_id)  # says whether it is somebody else's
        raise NotFound
    return found


def instance_for_event(*, organization_id: UUID, case_id: UUID, correlation_id: UUID | None) -> UUID | None:
    """By the request that is answered; else the case's present run."""
    if correlation_id is not None:
        step = WorkflowStep.objects.filter(id=correlation_id, instance__organization_id=organization_id)
        found = step.values_list("instance_id", "instance__case_id").first()
        if found is not None and found[1] == case_id:
            return found[0]
    rows = WorkflowInstance.objects.filter(organization_id=organization_id, case_id=case_id, superseded_by=None)
    return rows.values_list("id", flat=True).first()


def current_step(*, instance_id: UUID) -> WorkflowStep | None:
    return WorkflowStep.objects.filter(instance_id=instance_id, status__in=STEP_OPEN).order_by("-number").first()
