"""The code around the engine: takes a locked run and an input, lets the engine decide, and writes all of it at once.

Only this module changes the state of a run and its steps. Others write around it: `start` inserts a queued run,
`intervene` writes why a run was cancelled, its successor and the count of its events, and erasure empties it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.evidence.services.at_end import evidence_when_ended
from governance.evidence.states import EvidenceKind
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_entry_build
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import lines_about
from workflows.engine.core import drive
from workflows.engine.inputs import (
    DeadlinePassed,
    GateAnswered,
    Input,
    Intervened,
    Overdue,
    Postponed,
    RetryDue,
    Started,
    StepReported,
    TimedOut,
)
from workflows.engine.state import InstanceState, Run
from workflows.events.models import WorkflowEvent
from workflows.events.states import EventOutcome
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.rules import ORDERED, STARTS
from workflows.runs.selectors.locked import definition_of, steps_needed
from workflows.runs.selectors.times import POSTPONED
from workflows.runs.services.effects import StepGate, call_keys_set, effects_apply, outbox_rows, successes_join
from workflows.runs.services.metrics import count_run
from workflows.runs.services.rows import STEP_FIELDS, instance_change, state_of, steps_changed
from workflows.runs.states import ENDED, InstanceStatus, InterventionAction

# Event types of the log's rows. They are stored, so they never change.
TRIGGER = "case.created"
STARTED = "instance.started"
TIMED_OUT = "step.timed_out"
RETRY_DUE = "step.retry_due"
DEADLINE = "instance.deadline_passed"
OVERDUE = "step.overdue"
GATE = "gate.answered"
INTERVENED = "instance.intervened"


@dataclass(frozen=True, slots=True)
class LoggedInput:
    """`envelope` is what a module sent; for inputs of our own it is their content."""

    input: Input
    event_type: str
    source: str
    envelope: dict[str, Any] = field(default_factory=dict)
    event_id: UUID | None = None
    correlation_id: UUID | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    redrives: UUID | None = None


def timed_out_input(step: UUID, at: datetime) -> LoggedInput:
    return LoggedInput(TimedOut(at, step), TIMED_OUT, "clock", correlation_id=step)


def retry_due_input(step: UUID, at: datetime) -> LoggedInput:
    return LoggedInput(RetryDue(at, step), RETRY_DUE, "clock", correlation_id=step)


def deadline_passed_input(at: datetime) -> LoggedInput:
    return LoggedInput(DeadlinePassed(at), DEADLINE, "clock")


def postponed_input(at: datetime, until: datetime, step: UUID | None = None) -> LoggedInput:
    said = {"until": until.isoformat()}
    return LoggedInput(Postponed(at, until, step), POSTPONED, "clock", envelope=said, correlation_id=step)


def overdue_input(step: UUID, at: datetime) -> LoggedInput:
    return LoggedInput(Overdue(at, step), OVERDUE, "clock", correlation_id=step)


def started_input(at: datetime) -> LoggedInput:
    return LoggedInput(Started(at), STARTED, "clock")


def gate_answered_input(answer: GateAnswered) -> LoggedInput:
    return LoggedInput(answer, GATE, "gate", envelope=_answer_json(answer), correlation_id=answer.step)


def intervened_input(
    action: InterventionAction, reason_code: str, at: datetime, step: UUID | None = None, **more: str
) -> LoggedInput:
    """`more` goes into the log and the ledger: the note's hash, and the bulk order it is part of. `step`: which one of
    several that wait for their retry."""
    said = {"action": action.value, "reason_code": reason_code} | more
    happened = Intervened(at, action, reason_code, step)
    return LoggedInput(happened, INTERVENED, "person", envelope=said, correlation_id=step)


def _answer_json(answer: GateAnswered) -> dict[str, Any]:
    return {
        "at": answer.at.isoformat(),
        "step": str(answer.step),
        "verdict": answer.verdict,
        "reason_code": answer.reason_code,
        "retry_after": answer.retry_after,
    }


def answer_from_json(said: dict[str, Any]) -> GateAnswered:
    return GateAnswered(
        at=datetime.fromisoformat(said["at"]),
        step=UUID(said["step"]),
        verdict=said["verdict"],
        reason_code=said["reason_code"],
        retry_after=said["retry_after"],
    )


OF_A_STEP: dict[str, type[TimedOut | RetryDue | Overdue]] = {
    TIMED_OUT: TimedOut,
    RETRY_DUE: RetryDue,
    OVERDUE: Overdue,
}


def input_of(row: WorkflowEvent) -> Input | None:
    """The input that the engine got then; None for an event that never reached it (a start that was queued)."""
    step = row.correlation_id
    if row.event_type in STARTS:
        return Started(row.at) if row.outcome == EventOutcome.ADVANCED else None
    if row.event_type in {DEADLINE, POSTPONED}:
        return _timer_of(row)
    if row.event_type == GATE:
        return answer_from_json(row.envelope)
    if row.event_type == INTERVENED:
        return Intervened(row.at, InterventionAction(row.envelope["action"]), row.envelope["reason_code"], step)
    if row.event_type in OF_A_STEP:
        if step is None:
            raise ValueError(f"{row.event_type} without a step")
        return OF_A_STEP[row.event_type](row.at, step)
    allowed = row.facts.get("retries_allowed", True)
    contradicts = row.facts.get("contradicts", False)
    payload, by_person = row.envelope.get("payload"), row.source == "person"
    unknown = row.facts.get("unknown", False)
    return StepReported(row.at, row.event_type, step, payload, allowed, by_person, contradicts, unknown)


def _timer_of(row: WorkflowEvent) -> Input:
    if row.event_type == DEADLINE:
        return DeadlinePassed(row.at)
    return Postponed(row.at, datetime.fromisoformat(row.envelope["until"]), row.correlation_id)


ACTION_OF = {
    InstanceStatus.HALTED.value: "workflow.halted",
    InstanceStatus.COMPLETED.value: "workflow.completed",
    InstanceStatus.CANCELLED.value: "workflow.cancelled",
}
STEP_CHANGE = (*STEP_FIELDS, "governed_attempt", "request_event")


@dataclass(frozen=True, slots=True)
class Advanced:
    """The result of one input."""

    instance: WorkflowInstance
    event: WorkflowEvent
    run: Run
    old_state: str


def instance_advance(
    *, instance: WorkflowInstance, logged: LoggedInput, actor: Actor, at: datetime, region: str, new: bool = False
) -> Advanced:
    """Advance a run by one input, in the caller's transaction. The run comes from `instance_lock`, which also took the
    send lock and loaded organization and contract; or it is `new` and not stored yet."""
    with lines_about(instance_id=instance.id, correlation_id=logged.correlation_id):
        return _advance(instance=instance, logged=logged, actor=actor, at=at, region=region, new=new)


def _advance(
    *, instance: WorkflowInstance, logged: LoggedInput, actor: Actor, at: datetime, region: str, new: bool
) -> Advanced:
    rows = [] if new else _steps(instance)
    state = state_of(instance, rows)
    logged = _not_before(logged, state)
    gate = StepGate(
        instance=instance,
        at=max(at, logged.input.at),
        region=region,
        arrival=instance.locked_arrival,
        earlier={(row.scope, row.step_id): row.governed_attempt for row in rows if row.governed_attempt},
    )
    old_state, instance.locked_arrival = instance.state, None
    run = drive(definition_of(instance), kind_table(), state, logged.input, gate=gate)
    event = _event_row(instance, run, gate, logged, at)
    if run.outcome == EventOutcome.ADVANCED:
        _write(instance, rows, run, gate, event, actor=actor, at=at, new=new)
    elif new:
        raise ValueError("a new instance must start")
    else:
        _note(instance, event, run, gate)
    count_run(instance, run, old_state=old_state)
    if instance.state in ENDED and old_state not in ENDED:
        evidence_when_ended(
            kind=EvidenceKind.INSTANCE, subject_id=instance.id, contract_id=instance.contract_id, risk_tier=""
        )
    return Advanced(instance, event, run, old_state)


def _not_before(logged: LoggedInput, state: InstanceState) -> LoggedInput:
    """What answers a step did not happen before it: the clocks of two machines differ. Deadlines are told as they
    are."""
    if isinstance(logged.input, TimedOut | DeadlinePassed | Postponed):
        return logged
    known = [moment for step in state.steps for moment in (step.started_at, step.completed_at) if moment is not None]
    if state.tokens is not None and state.tokens.at is not None:
        known.append(state.tokens.at)
    if not known or logged.input.at >= (latest := max(known)):
        return logged
    return replace(logged, input=replace(logged.input, at=latest))


def _steps(instance: WorkflowInstance) -> list[WorkflowStep]:
    # As they were read with the lock. Used once: a second advance under the same lock would see the steps before the
    # first.
    locked, instance.locked_steps = instance.locked_steps, None
    if locked is None:
        return steps_needed(instance)
    return locked


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
    given = instance_change(instance, run.state)
    instance.started_at = instance.started_at or at
    instance.writes += gate.sent
    added, changed = steps_changed(instance, rows, run.state)
    outbox = outbox_rows(instance, run, event, actor=actor, at=at)
    requests = {row.envelope["correlation_id"]: row.id for row in outbox}
    for row in [*added, *changed]:
        row.request_event = requests.get(str(row.id)) or row.request_event
        # A retry is another try of the same attempt; a try that a person started has an attempt of its own.
        inherited = gate.earlier.get((row.scope, row.step_id)) if row.retries else None
        row.governed_attempt = gate.attempts.get(row.id) or row.governed_attempt or inherited
    call_keys_set(instance, [*added, *changed], outbox)
    entry = _entry(instance, run, event, actor=actor, at=at)
    # The gate's own rows (decision, attempt, lease, intent) are pending too: all of it is one statement, or the attempt
    # could be committed without the run that asked for it.
    pending, steps = gate.pending, [*rows, *added]
    if new:
        pending.add(instance)
    else:
        pending.change(instance, (*given, "events", "emitted", "writes", "started_at"))
    for row in changed:
        pending.change(row, STEP_CHANGE)
    pending.add(*added, event, *outbox, entry)
    successes_join(run, steps, pending, gate.opened, actor=actor, at=at)
    pending.write()
    effects_apply(instance, run, steps, actor=actor, at=at)


def _note(instance: WorkflowInstance, event: WorkflowEvent, run: Run, gate: StepGate) -> None:
    """A stale, late or drifted input: it is logged, and an early completion is kept. Nothing else changes."""
    instance.early = run.state.early
    gate.pending.change(instance, ("events", "early"))
    gate.pending.add(event)
    gate.pending.write()


def _event_row(
    instance: WorkflowInstance, run: Run, gate: StepGate, logged: LoggedInput, at: datetime
) -> WorkflowEvent:
    instance.events += 1
    # Replay has no gate to ask: it takes the answers from here.
    gates = {"gates": [_answer_json(answer) for answer in gate.answers]} if gate.answers else {}
    event = new_row(
        WorkflowEvent,
        id=uuid7(),
        organization_id=instance.organization_id,
        instance_id=instance.id,
        number=instance.events,
        event_id=logged.event_id,
        event_type=logged.event_type,
        source=logged.source,
        case_id=instance.case_id,
        correlation_id=logged.correlation_id,
        envelope=logged.envelope,
        facts=logged.facts | gates,
        outcome=run.outcome,
        drift=run.drift or "",
        redrives_id=logged.redrives,
        at=logged.input.at,
        received_at=at,
    )
    # Set by hand, because `new_row` does not call Model.__init__; without it `event.instance` would be a query.
    event._state.fields_cache["instance"] = instance
    return event


def _entry(instance: WorkflowInstance, run: Run, event: WorkflowEvent, *, actor: Actor, at: datetime) -> LedgerEntry:
    """The ledger entry of an advance: the input, what it did, and the state of the run after it."""
    action = ACTION_OF.get(instance.state, "workflow.advanced")
    if event.event_type in STARTS and instance.state not in ACTION_OF:
        action = "workflow.started"
    payload: dict[str, Any] = {"event": event.event_type, "number": event.number, "status": str(instance.state)}
    if event.event_id is not None:
        payload["event_id"] = str(event.event_id)
    if run.path:
        payload["path"] = run.path
    halted = instance.state == InstanceStatus.HALTED
    reason_code = instance.halt_reason if halted else event.envelope.get("reason_code", "")
    if event.event_type in ORDERED:
        action, reason_code = ORDERED[event.event_type], event.envelope["reason_code"]
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
