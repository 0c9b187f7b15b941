"""An attempt that a person or a freed place has released: its step's request goes out now."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.selectors.attempt import origin_of
from attempts.services.recheck import Go
from attempts.services.step_attempt import step_dispatch
from reasoncodes.actors import SYSTEM
from reasoncodes.tenancy import every_tenant
from workflows.engine.inputs import GateAnswered
from workflows.models import WorkflowStep
from workflows.selectors.instance import instance_lock
from workflows.services.advance import instance_advance
from workflows.services.happening import gate_answered, retry_due
from workflows.services.nudge_follow import current_try
from workflows.states import StepStatus


def step_ready(*, attempt_id: UUID, at: datetime, region: str) -> None:
    """Called by the worker's dispatch and by its tick; does nothing when the step is no longer waiting for it."""
    with every_tenant(), transaction.atomic():
        origin = origin_of(attempt_id=attempt_id)
        first = WorkflowStep.objects.filter(id=origin).first() if origin else None
        if first is None:
            return
        instance = instance_lock(instance_id=first.instance_id)
        step = current_try(first)
        if step.status == StepStatus.PENDING and step.next_eligible_at is not None and step.next_eligible_at <= at:
            happening = retry_due(step.id, at)
        elif step.status == StepStatus.WAITING_APPROVAL and step.governed_attempt == attempt_id:
            answer = _dispatch(step, attempt_id, at)
            if answer is None:
                return
            instance.writes += answer.verdict == "allow"
            happening = gate_answered(answer)
        else:
            return
        instance_advance(instance=instance, happening=happening, actor=SYSTEM, at=at, region=region)


def _dispatch(step: WorkflowStep, attempt_id: UUID, at: datetime) -> GateAnswered | None:
    """None: not yet; it stays held and the next ring tries again."""
    leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=at)
    if leases.granted:
        return GateAnswered(at, step.id, "allow")
    if not leases.refused or leases.refused[0][1].go is Go.HOLD:
        return None
    return GateAnswered(at, step.id, "deny", leases.refused[0][1].reason_code or "outcome_unknown")
