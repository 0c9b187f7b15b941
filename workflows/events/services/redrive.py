"""A person has an unmatched event processed again. Possible once per event: the result is a row of its own."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.ledger.services import ledger_append
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound, WrongState
from workflows.events.models import WorkflowEvent
from workflows.events.selectors import event_get, event_was_redriven
from workflows.events.services.receive import event_apply
from workflows.events.states import EventOutcome


@violations_recorded
def event_redrive(*, event_id: UUID, actor: Actor, at: datetime, region: str) -> WorkflowEvent:
    """The new event. If it still matches nothing it is kept too, and can be processed again later."""
    # The log is append-only and its rows cannot be locked; the constraint `event_redriven_once` lets one of two people
    # win.
    try:
        return _redrive(event_id, actor, at, region)
    except IntegrityError:  # another redrive, or a new event of the same case, committed first: check again
        return _redrive(event_id, actor, at, region)


def _redrive(event_id: UUID, actor: Actor, at: datetime, region: str) -> WorkflowEvent:
    with transaction.atomic():
        event = event_get(event_id=event_id)
        if not actor.may_act_in(event.organization_id):
            raise NotFound
        _refuse_unless_waiting(event)
        made = event_apply(envelope=event.envelope, actor=actor, at=at, region=region, redrives=event.id)
        if made is None:
            raise ValueError("a driven event has no id that could be known")
        _record(event, made, actor=actor, at=at)
    return made


def _record(event: WorkflowEvent, made: WorkflowEvent, *, actor: Actor, at: datetime) -> None:
    ledger_append(
        action="workflow.event_redriven",
        organization_id=event.organization_id,
        subject_type="workflow_event",
        subject_id=event.id,
        actor=actor,
        at=at,
        payload={
            "event": event.event_type,
            "made": str(made.id),
            "outcome": str(made.outcome),
            "instance": str(made.instance_id) if made.instance_id else None,
        },
    )


def _refuse_unless_waiting(event: WorkflowEvent) -> None:
    if event.outcome != EventOutcome.UNMATCHED:
        raise WrongState(f"The event was accepted as {event.outcome}. Only unmatched events can be processed again.")
    if event_was_redriven(event_id=event.id):
        raise WrongState("The event was already processed again. Look at the newer event instead.")
