"""A case begins: the active definition is found and frozen, and the run starts, or queues while its tenant is full."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from governance.insert import insert_together
from governance.ledger.append import ledger_entry_build
from governance.rows import new_row
from governance.services.decision import retention_stamp
from reasoncodes.actors import Actor
from reasoncodes.ids import uuid7
from workflows.engine.inputs import Started
from workflows.models import WorkflowDefinition, WorkflowEvent, WorkflowInstance
from workflows.selectors.start import start_facts
from workflows.services.advance import instance_advance
from workflows.services.event_keep import correlation_of, event_keep
from workflows.services.happening import TRIGGER, Happening
from workflows.services.origin import root_context
from workflows.services.room import has_room
from workflows.states import EventOutcome, InstanceStatus, Mode


def instance_start(
    *, envelope: dict[str, Any], actor: Actor, at: datetime, region: str, redrives: UUID | None = None
) -> WorkflowEvent | None:
    """In the caller's transaction; a case has one run. Without an active definition the event is kept as unmatched.
    None: it was taken in before."""
    organization_id, case_id = UUID(envelope["org_id"]), UUID(envelope["case_id"])
    happening = trigger(envelope, at=at, redrives=redrives)
    facts = start_facts(
        organization_id=organization_id,
        product_id=UUID(envelope["product_id"]),
        case_id=case_id,
        event_id=happening.event_id,
    )
    if facts.known:
        return None
    if facts.definition is None:
        return event_keep(envelope=envelope, at=at, redrives=redrives)
    if facts.running is not None:
        return _known_case(WorkflowInstance.objects.get(id=facts.running), happening, at)
    instance = instance_build(definition=facts.definition, envelope=envelope, at=at)
    instance.held_arrival = facts.arrival
    return instance_begin(
        instance=instance, happening=happening, actor=actor, at=at, region=region, under_way=facts.under_way
    )


def trigger(envelope: dict[str, Any], *, at: datetime, redrives: UUID | None = None) -> Happening:
    return Happening(
        input=Started(at),
        event_type=TRIGGER,
        source="module",
        envelope=envelope,
        event_id=None if redrives else UUID(envelope["event_id"]),
        correlation_id=correlation_of(envelope),
        redrives=redrives,
    )


def instance_begin(
    *,
    instance: WorkflowInstance,
    happening: Happening,
    actor: Actor,
    at: datetime,
    region: str,
    under_way: int | None = None,
) -> WorkflowEvent:
    """At once if there is room; otherwise queued, and the hand-out starts it. The transaction has passed the gate."""
    if has_room(organization=instance.organization, under_way=under_way):
        advanced = instance_advance(instance=instance, happening=happening, actor=actor, at=at, region=region, new=True)
        return advanced.event
    return _queue(instance, happening, actor=actor, at=at)


def instance_build(*, definition: WorkflowDefinition, envelope: dict[str, Any], at: datetime) -> WorkflowInstance:
    """The definition as it is now, by its hash: what happens to it later does not touch this run."""
    payload, instance_id = envelope["payload"], uuid7()
    organization, contract = definition.organization, definition.contract
    instance = new_row(
        WorkflowInstance,
        id=instance_id,
        organization_id=definition.organization_id,
        product_id=definition.product_id,
        case_id=UUID(envelope["case_id"]),
        definition_id=definition.id,
        contract_id=definition.contract_id,
        definition_sha256=definition.snapshot_sha256,
        mode=payload.get("orchestration_mode") or definition.default_mode or Mode.ACTIVE,
        context=root_context(envelope, definition_id=definition.id, instance_id=instance_id),
        early={},
        created_at=at,
        deadline_at=at + timedelta(seconds=definition.workflow_timeout_seconds),
        retention_until=retention_stamp(
            regions=organization.regions if organization else [],
            contract_sha256=contract.snapshot_sha256 if contract else "",
            at=at,
        ),
    )
    beside = {"organization": organization, "contract": contract, "product": definition.product}
    instance._state.fields_cache |= beside | {"definition": definition}
    return instance


def _queue(instance: WorkflowInstance, happening: Happening, *, actor: Actor, at: datetime) -> WorkflowEvent:
    instance.events = 1
    event = _row(instance, happening, at)
    entry = ledger_entry_build(
        action="workflow.queued",
        organization_id=instance.organization_id,
        subject_type="workflow_instance",
        subject_id=instance.id,
        actor=actor,
        at=at,
        payload={"event": happening.event_type, "status": InstanceStatus.QUEUED.value},
    )
    insert_together([instance], [event], [entry])
    return event


def _known_case(instance: WorkflowInstance, happening: Happening, at: datetime) -> WorkflowEvent:
    """Said twice with two event ids: kept beside the run, of no consequence. `supersede` is how a case runs anew."""
    event = _row(instance, happening, at)
    event.number = None
    insert_together([event])
    return event


def _row(instance: WorkflowInstance, happening: Happening, at: datetime) -> WorkflowEvent:
    return WorkflowEvent(
        organization_id=instance.organization_id,
        instance=instance,
        number=instance.events,
        event_id=happening.event_id,
        event_type=happening.event_type,
        source=happening.source,
        case_id=instance.case_id,
        correlation_id=happening.correlation_id,
        envelope=happening.envelope,
        outcome=EventOutcome.IGNORED,
        redrives_id=happening.redrives,
        at=happening.input.at,
        received_at=at,
    )
