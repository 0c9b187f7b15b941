"""Reading instances, their steps, their log; and locking one by its id (an event locks its own in `instance_held`)."""

from uuid import UUID

from governance.selectors import tenant_get
from reasoncodes.errors import NotFound
from workflows.models import WorkflowInstance, WorkflowStep
from workflows.selectors.instance_held import held_by_id
from workflows.states import STEP_OPEN


def instance_lock(*, instance_id: UUID) -> WorkflowInstance:
    """With its steps, organization and contract, which no advance can do without; the gate is passed with it."""
    found = held_by_id(instance_id=instance_id)
    if found is None:
        tenant_get(WorkflowInstance, instance_id)  # says whether it is somebody else's
        raise NotFound
    return found


def current_step(*, instance_id: UUID) -> WorkflowStep | None:
    return WorkflowStep.objects.filter(instance_id=instance_id, status__in=STEP_OPEN).order_by("-number").first()
