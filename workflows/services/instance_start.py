"""A case begins: the active definition is found and frozen, and the run starts, or queues while its tenant is full."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from governance.insert import insert_together
from governance.ledger.append import ledger_entry_build
from governance.models import Product
from governance.services.decision import retention_stamp
from reasoncodes.actors import Actor
from reasoncodes.ids import uuid7
from workflows.engine.inputs import Started
from workflows.models import WorkflowDefinition, WorkflowEvent, WorkflowInstance
from workflows.services.advance import instance_advance
from workflows.services.event_keep import correlation_of, event_keep
from workflows.services.happening import TRIGGER, Happening
from workflows.services.origin import root_context
from workflows.services.room import has_room
from workflows.states import DefinitionStatus, EventOutcome, InstanceStatus, Mode


def instance_start(
    *, envelope: dict[str, Any], actor: Actor, at: datetime, region: str, redrives: UUID | None = None
) -> WorkflowEvent:
    """In the caller's transaction; a case has one run. Without an active definition the event is kept as unmatched."""
    organization_id, case_id = UUID(envelope["org_id"]), UUID(envelope["case_id"])
    definition = definition_for(organization_id=organization_id, product_id=UUID(envelope["product_id"]))
    if definition is None or definition.organization is None:
        return event_keep(envelope=envelope, at=at, redrives=redrives)
    happening = trigger(envelope, at=at, redrives=redrives)
    running = WorkflowInstance.objects.filter(organization_id=organization_id, case_id=case_id, superseded_by=None)
    if (found := running.first()) is not None:
        return _known_case(found, happening, at)
    instance = instance_build(definition=definition, envelope=envelope, at=at)
    return instance_begin(instance=instance, happening=happening, actor=actor, at=at, region=region)


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
    *, instance: WorkflowInstance, happening: Happening, actor: Actor, at: datetime, region: str
) -> WorkflowEvent:
    """At once if there is room; otherwise queued, and the hand-out starts it."""
    if has_room(organization=instance.organization):
        advanced = instance_advance(instance=instance, happening=happening, actor=actor, at=at, region=region, new=True)
        return advanced.event
    return _queue(instance, happening, actor=actor, at=at)


def definition_for(*, organization_id: UUID, product_id: UUID) -> WorkflowDefinition | None:
    """The product's own active definition, or the one for the whole organization."""
    if not Product.objects.filter(id=product_id, organization_id=organization_id).exists():
        return None
    rows = WorkflowDefinition.objects.filter(
        organization_id=organization_id, status=DefinitionStatus.ACTIVE, is_template=False
    ).select_related("organization", "contract", "product")
    found = {row.product_id: row for row in rows.filter(product_id__in=[product_id]) | rows.filter(product=None)}
    return found.get(product_id) or found.get(None)


def instance_build(*, definition: WorkflowDefinition, envelope: dict[str, Any], at: datetime) -> WorkflowInstance:
    """The definition as it is now, by its hash: what happens to it later does not touch this run."""
    payload, instance_id = envelope["payload"], uuid7()
    return WorkflowInstance(
        id=instance_id,
        organization=definition.organization,
        product=definition.product,
        case_id=UUID(envelope["case_id"]),
        definition=definition,
        contract=definition.contract,
        definition_sha256=definition.snapshot_sha256,
        mode=payload.get("orchestration_mode") or definition.default_mode or Mode.ACTIVE,
        context=root_context(envelope, definition_id=definition.id, instance_id=instance_id),
        created_at=at,
        deadline_at=at + timedelta(seconds=definition.workflow_timeout_seconds),
        retention_until=retention_stamp(
            regions=definition.organization.regions if definition.organization else [],
            contract_sha256=definition.contract.snapshot_sha256 if definition.contract else "",
            at=at,
        ),
    )


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
