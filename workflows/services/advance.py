"""The shell: reads an instance under its lock, lets the engine decide, and writes all of it in one go.

Every change of an instance or a step is made here and nowhere else.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from governance.insert import insert_together
from governance.ledger.append import ledger_entry_build
from governance.models import LedgerEntry
from reasoncodes.actors import Actor
from workflows.engine.core import drive
from workflows.engine.run import Run
from workflows.kinds.registry import table
from workflows.metrics import count_run
from workflows.models import WorkflowEvent, WorkflowInstance, WorkflowStep
from workflows.services.definition_read import definition_of
from workflows.services.effects import effects_apply, outbox_rows
from workflows.services.gate import StepGate
from workflows.services.happening import INTERVENED, STARTED, TRIGGER, Happening, answer_json
from workflows.services.rows import INSTANCE_FIELDS, STEP_FIELDS, state_of, steps_changed
from workflows.states import EventOutcome, InstanceStatus

ACTION_OF = {
    InstanceStatus.HALTED.value: "workflow.halted",
    InstanceStatus.COMPLETED.value: "workflow.completed",
    InstanceStatus.CANCELLED.value: "workflow.cancelled",
}
COUNTERS = ("events", "emitted", "writes", "started_at")


@dataclass(frozen=True, slots=True)
class Advanced:
    """What an input did."""

    instance: WorkflowInstance
    event: WorkflowEvent
    run: Run
    old_status: str


def instance_advance(
    *, instance: WorkflowInstance, happening: Happening, actor: Actor, at: datetime, region: str, new: bool = False
) -> Advanced:
    """In the caller's transaction. The instance is locked, or `new` and not yet stored; organization and contract come
    with it."""
    rows = [] if new else list(WorkflowStep.objects.filter(instance=instance).order_by("number"))
    gate = StepGate(
        instance=instance,
        at=at,
        region=region,
        earlier={row.step_id: row.governed_attempt for row in rows if row.governed_attempt},
    )
    old_status = instance.status
    run = drive(definition_of(instance), table(), state_of(instance, rows), happening.input, gate=gate)
    event = event_row(instance, run, gate, happening, at)
    if run.outcome == EventOutcome.ADVANCED:
        _write(instance, rows, run, gate, event, actor=actor, at=at, new=new)
    elif new:
        raise ValueError("a new instance must start")
    else:
        _note(instance, event, run)
    count_run(instance, run, old_status=old_status)
    return Advanced(instance, event, run, old_status)


def _write(
    instance: WorkflowInstance,
    rows: list[WorkflowStep],
    run: Run,
    gate: StepGate,
    event: WorkflowEvent,
    *,
    actor: Actor,
    at: datetime,
    new: bool,
) -> None:
    for name in INSTANCE_FIELDS:
        setattr(instance, name, getattr(run.state, name))
    instance.started_at = instance.started_at or at
    instance.writes += gate.sent
    added, changed = steps_changed(instance, rows, run.state)
    for row in [*added, *changed]:
        inherited = gate.earlier.get(row.step_id) if row.retries else None  # a retry is another try of one attempt
        row.governed_attempt = gate.attempts.get(row.id) or row.governed_attempt or inherited
    outbox = outbox_rows(instance, run, event, actor=actor, at=at)
    entry = _entry(instance, run, event, actor=actor, at=at)
    if not new:
        instance.save(update_fields=[*INSTANCE_FIELDS, *COUNTERS])
    for row in changed:
        row.save(update_fields=[*STEP_FIELDS, "governed_attempt"])
    insert_together([instance] if new else [], added, [event], outbox, [entry])
    effects_apply(instance, run, [*rows, *added], actor=actor, at=at)


def _note(instance: WorkflowInstance, event: WorkflowEvent, run: Run) -> None:
    """Stale, late or drifted: it is on the log, and perhaps kept for its turn; nothing else changes."""
    instance.early = run.state.early
    instance.save(update_fields=["events", "early"])
    insert_together([event])


def event_row(
    instance: WorkflowInstance, run: Run, gate: StepGate, happening: Happening, at: datetime
) -> WorkflowEvent:
    instance.events += 1
    gates = {"gates": [answer_json(answer) for answer in gate.answers]} if gate.answers else {}
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
        facts=happening.facts | gates,
        outcome=run.outcome,
        drift=run.drift or "",
        redrives_id=happening.redrives,
        at=happening.input.at,
        received_at=at,
    )


def _entry(instance: WorkflowInstance, run: Run, event: WorkflowEvent, *, actor: Actor, at: datetime) -> LedgerEntry:
    """One entry per advance: which input, what it did, where the instance is now."""
    action = ACTION_OF.get(instance.status, "workflow.advanced")
    if event.event_type in {TRIGGER, STARTED} and instance.status not in ACTION_OF:
        action = "workflow.started"
    payload: dict[str, Any] = {"event": event.event_type, "number": event.number, "status": instance.status}
    if event.event_id is not None:
        payload["event_id"] = str(event.event_id)
    if run.path:
        payload["path"] = run.path
    halted = instance.status == InstanceStatus.HALTED
    reason_code = instance.halt_reason if halted else event.envelope.get("reason_code", "")
    if event.event_type == INTERVENED:
        action, reason_code = "workflow.intervened", event.envelope["reason_code"]
        payload |= {name: value for name, value in event.envelope.items() if name != "reason_code"}
    return ledger_entry_build(
        action=action,
        organization_id=instance.organization_id,
        subject_type="workflow_instance",
        subject_id=instance.id,
        actor=actor,
        at=at,
        payload=payload,
        reason_code=reason_code,
    )
