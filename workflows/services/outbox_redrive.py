"""A person has a parked event published again, once its stream takes it. Its place in the order stays."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.ledger.append import ledger_append
from governance.services.note import note_create
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import NotFound, WrongState
from reasoncodes.selectors import reason_code_require
from workflows.models import OutboxEvent
from workflows.services.outbox import relay_ring
from workflows.states import OutboxStatus


@violations_recorded
def outbox_redrive(*, event_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime) -> OutboxEvent:
    with transaction.atomic():
        row = OutboxEvent.objects.select_for_update(no_key=True).filter(id=event_id).first()
        if row is None or not actor.may_act_in(row.organization_id):
            raise NotFound
        reason_code_require(organization_id=row.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        if row.status != OutboxStatus.PARKED:
            raise WrongState(f"The event is {row.status}; only parked ones are published again.")
        if not row.envelope:
            raise WrongState("What it said was erased with its run; there is nothing to publish.")
        kept = note_create(organization_id=row.organization_id, text=note)
        row.status, row.refusals, row.next_try_at = OutboxStatus.PENDING, 0, at
        row.save(update_fields=["status", "refusals", "next_try_at"])
        ledger_append(
            action="workflow.outgoing_redriven",
            organization_id=row.organization_id,
            subject_type="outbox_event",
            subject_id=row.id,
            actor=actor,
            at=at,
            reason_code=reason_code,
            payload={"event": row.event_type, "tries": row.tries}
            | ({"note": str(kept.id), "note_sha256": kept.sha256} if kept else {}),
        )
        relay_ring()
    return row
