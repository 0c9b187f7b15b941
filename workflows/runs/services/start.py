"""Starts the run of a new case under the active definition, or queues it while its organization has no free slot."""

import secrets
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from governance.enforcement.services import retention_stamp
from governance.ledger.services import ledger_entry_build
from governance.sql.insert import insert_together
from governance.sql.statements import new_row
from governance.tenancy.models import Organization
from governance.throttles.services import Limit, throttle_take
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.states import Mode
from workflows.engine.inputs import Started
from workflows.engine.tokens import tokens_first, tokens_json
from workflows.events.models import WorkflowEvent
from workflows.events.rules import correlation_of
from workflows.events.services.keep import event_keep
from workflows.events.states import EventOutcome
from workflows.runs.models import WorkflowInstance
from workflows.runs.selectors.locked import definition_read
from workflows.runs.selectors.start import start_facts
from workflows.runs.services.advance import LoggedInput, instance_advance
from workflows.runs.states import InstanceStatus

# LIMIT: counts no further than the cap, so that the cost does not grow with the runs.
UNDER_WAY = """
SELECT count(*) FROM (
    SELECT 1 FROM workflows_workflowinstance
    WHERE organization_id = %(organization)s AND state = 'running' LIMIT %(cap)s
) running
"""
# Serializes the starts of one organization until their commits. Without it two starts that do not see each other could
# both take the last slot. Taken only when few slots are left, so that starts normally do not wait for each other.
ONE_BY_ONE = "SELECT pg_advisory_xact_lock(hashtextextended('workflow_runs ' || %(organization)s, 0))"
FEW = 20


def has_run_slot(*, organization: Organization, under_way: int | None = None) -> bool:
    """Whether a run may start now: runs at once, and runs per minute. Call it in the transaction that starts the run;
    `under_way` is the number of runs that it has just counted."""
    # The concurrency limit first: the throttle counts what it lets through, and a run that cannot start must not use it
    # up.
    if not has_concurrency_slot(organization=organization, under_way=under_way):
        return False
    limit = Limit("runs", str(organization.id), organization.max_runs_per_min, 60)
    # Anything but "ok" is full, also "unavailable": a limit that cannot be read must not let everything through.
    return throttle_take(limits=[limit]).status == "ok"


def has_concurrency_slot(*, organization: Organization, under_way: int | None = None) -> bool:
    """Whether the organization may have one more run at once."""
    cap = organization.max_concurrency
    if under_way is not None and not 0 < cap - under_way <= FEW:
        return under_way < cap
    facts: dict[str, str | int] = {"organization": str(organization.id), "cap": cap}
    with connection.cursor() as cursor:
        if under_way is None:
            under_way = _count(cursor, facts)
        if 0 < cap - under_way <= FEW:
            cursor.execute(ONE_BY_ONE, facts)
            # Counted again: the transaction that had the lock before may have taken the last slot.
            under_way = _count(cursor, facts)
    return under_way < cap


def _count(cursor: Any, facts: dict[str, str | int]) -> int:
    cursor.execute(UNDER_WAY, facts)
    (under_way,) = cursor.fetchone()
    return int(under_way)


def case_origin(instance: WorkflowInstance) -> dict[str, Any]:
    """The envelope of the event that started the case, from the log of the case's first run."""
    envelope = _first(instance.id)
    while "supersedes" in envelope:
        envelope = _first(UUID(envelope["supersedes"]))
    return envelope


def root_context(envelope: dict[str, Any], *, definition_id: UUID, instance_id: UUID) -> dict[str, Any]:
    """The context of a run before its first step."""
    payload = envelope["payload"]
    root = {name: envelope[name] for name in ("case_id", "org_id", "product_id")}
    root |= {"definition_id": str(definition_id), "instance_id": str(instance_id)}
    return root | {name: payload[name] for name in ("patient_id", "image_ids") if name in payload}


def _first(instance_id: UUID) -> dict[str, Any]:
    envelope: dict[str, Any] = WorkflowEvent.objects.values_list("envelope", flat=True).get(
        instance_id=instance_id, number=1
    )
    return envelope


def instance_start(
    *, envelope: dict[str, Any], actor: Actor, at: datetime, region: str, redrives: UUID | None = None
) -> WorkflowEvent | None:
    """In the caller's transaction. A case has one run; without an active definition the event is kept as unmatched.
    None: an event with this id was received before."""
    organization_id, case_id = UUID(envelope["org_id"]), UUID(envelope["case_id"])
    logged = trigger(envelope, at=at, redrives=redrives)
    facts = start_facts(
        organization_id=organization_id,
        product_id=UUID(envelope["product_id"]),
        case_id=case_id,
        event_id=logged.event_id,
    )
    if facts.known:
        return None
    if facts.definition is None:
        return event_keep(envelope=envelope, at=at, redrives=redrives)
    if facts.running is not None:
        return start_ignored(WorkflowInstance.objects.get(id=facts.running), logged, at)
    instance = instance_build(definition=facts.definition, envelope=envelope, at=at)
    instance.locked_arrival = facts.arrival
    return instance_begin(
        instance=instance, logged=logged, actor=actor, at=at, region=region, under_way=facts.under_way
    )


def trigger(envelope: dict[str, Any], *, at: datetime, redrives: UUID | None = None) -> LoggedInput:
    return LoggedInput(
        input=Started(at),
        event_type=envelope["event_type"],
        source="module",
        envelope=envelope,
        event_id=None if redrives else UUID(envelope["event_id"]),
        correlation_id=correlation_of(envelope),
        redrives=redrives,
    )


def instance_begin(
    *,
    instance: WorkflowInstance,
    logged: LoggedInput,
    actor: Actor,
    at: datetime,
    region: str,
    under_way: int | None = None,
) -> WorkflowEvent:
    """Start the run if a slot is free; otherwise queue it for `instances_dispatch`. The transaction has the send
    lock."""
    if has_run_slot(organization=instance.organization, under_way=under_way):
        advanced = instance_advance(instance=instance, logged=logged, actor=actor, at=at, region=region, new=True)
        return advanced.event
    return _queue(instance, logged, actor=actor, at=at)


def instance_build(*, definition: WorkflowDefinition, envelope: dict[str, Any], at: datetime) -> WorkflowInstance:
    """A run that is not stored yet. It follows the definition's frozen copy: later changes do not affect it."""
    payload, instance_id = envelope["payload"], uuid7()
    organization, contract = definition.organization, definition.contract
    format_ = definition_read(definition).format
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
        input=payload.get("input", {}) if format_ > 1 else None,
        definition_slug=payload.get("definition_slug", ""),
        business_key=payload.get("business_key", ""),
        tokens=tokens_json(tokens_first(format_)),
        secret=secrets.token_hex(16),
        created_at=at,
        deadline_at=at + timedelta(seconds=definition.workflow_timeout_seconds),
        retention_until=retention_stamp(
            regions=organization.regions if organization else [],
            contract_sha256=contract.snapshot_sha256 if contract else "",
            at=at,
        ),
    )
    beside = {"organization": organization, "contract": contract, "product": definition.product}
    # Set by hand, because `new_row` does not call Model.__init__; without it every one of them would be a query.
    instance._state.fields_cache |= beside | {"definition": definition}
    return instance


def _queue(instance: WorkflowInstance, logged: LoggedInput, *, actor: Actor, at: datetime) -> WorkflowEvent:
    instance.events = 1
    event = _row(instance, logged, at)
    entry = ledger_entry_build(
        action="workflow.queued",
        organization_id=instance.organization_id,
        subject_type="workflow_instance",
        subject_id=instance.id,
        actor=actor,
        at=at,
        payload={"event": logged.event_type, "status": InstanceStatus.QUEUED.value},
    )
    insert_together([instance], [event], [entry])
    return event


def start_ignored(instance: WorkflowInstance, logged: LoggedInput, at: datetime) -> WorkflowEvent:
    """A second start of the same case, or under the same business key, under another event id: recorded as ignored.
    `supersede` starts a case again."""
    # Without a number: it is no input of the engine, and replay must not see it.
    event = _row(instance, logged, at)
    event.number = None
    insert_together([event])
    return event


def _row(instance: WorkflowInstance, logged: LoggedInput, at: datetime) -> WorkflowEvent:
    return WorkflowEvent(
        organization_id=instance.organization_id,
        instance=instance,
        number=instance.events,
        event_id=logged.event_id,
        event_type=logged.event_type,
        source=logged.source,
        case_id=instance.case_id,
        correlation_id=logged.correlation_id,
        envelope=logged.envelope,
        outcome=EventOutcome.IGNORED,
        redrives_id=logged.redrives,
        at=logged.input.at,
        received_at=at,
    )
