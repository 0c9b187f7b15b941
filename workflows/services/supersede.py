"""A case runs anew under the latest active definition; the run before it ends and says by which it was replaced."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from reasoncodes.actors import Actor
from reasoncodes.errors import NotFound
from workflows.engine.inputs import Started
from workflows.errors import InterventionNotLegal
from workflows.models import WorkflowInstance, WorkflowIntervention
from workflows.selectors.instance import instance_lock
from workflows.selectors.start import definition_for
from workflows.services.happening import STARTED, Happening
from workflows.services.instance_start import instance_begin, instance_build
from workflows.services.intervene import Order, intervention_apply
from workflows.services.origin import origin_of


def instance_supersede(
    *, instance_id: UUID, order: Order, actor: Actor, at: datetime, region: str
) -> tuple[WorkflowIntervention, WorkflowInstance]:
    """The intervention on the old run, and the new one."""
    with transaction.atomic():
        old = instance_lock(instance_id=instance_id)
        if not actor.may_act_in(old.organization_id):
            raise NotFound
        envelope = origin_of(old)
        definition = definition_for(organization_id=old.organization_id, product_id=UUID(old.context["product_id"]))
        if definition is None:
            raise InterventionNotLegal("The case's product has no active definition to run under.")
        intervention = intervention_apply(old, order, actor=actor, at=at, region=region)
        new = instance_build(definition=definition, envelope=envelope, at=at)
        # One run per case: the old one leaves that place before the new one takes it. The foreign key is checked at
        # commit, when the new row is there.
        old.superseded_by_id, old.cancelled_reason = new.id, f"superseded_by:{new.id}"
        old.save(update_fields=["superseded_by", "cancelled_reason"])
        happening = Happening(Started(at), STARTED, "person", envelope={"supersedes": str(old.id)})
        instance_begin(instance=new, happening=happening, actor=actor, at=at, region=region)
    return intervention, new
