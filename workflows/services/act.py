"""Any of the five interventions by name: for doors that take the action as data."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor
from workflows.models import WorkflowInstance, WorkflowIntervention
from workflows.services.intervene import Order, instance_intervene
from workflows.services.supersede import instance_supersede
from workflows.states import InterventionAction


@dataclass(frozen=True, slots=True)
class Acted:
    """What was done, and the run that took the place of the old one, if it was superseded."""

    intervention: WorkflowIntervention
    successor: WorkflowInstance | None = None


@violations_recorded
def instance_act(*, instance_id: UUID, order: Order, actor: Actor, at: datetime, region: str) -> Acted:
    if order.action == InterventionAction.SUPERSEDE:
        done, successor = instance_supersede(instance_id=instance_id, order=order, actor=actor, at=at, region=region)
        return Acted(done, successor)
    return Acted(instance_intervene(instance_id=instance_id, order=order, actor=actor, at=at, region=region))
