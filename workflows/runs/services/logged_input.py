"""An input of the engine together with what the log keeps of it, and its way back from the log for replay."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.engine.inputs import (
    DeadlinePassed,
    GateAnswered,
    Input,
    Intervened,
    RetryDue,
    Started,
    StepReported,
    TimedOut,
)
from workflows.events.models import WorkflowEvent
from workflows.events.states import EventOutcome
from workflows.runs.states import InterventionAction

# Event types of the log's rows. They are stored, so they never change.
TRIGGER = "case.created"
STARTED = "instance.started"
TIMED_OUT = "step.timed_out"
RETRY_DUE = "step.retry_due"
DEADLINE = "instance.deadline_passed"
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


def started_input(at: datetime) -> LoggedInput:
    return LoggedInput(Started(at), STARTED, "clock")


def gate_answered_input(answer: GateAnswered) -> LoggedInput:
    return LoggedInput(answer, GATE, "gate", envelope=answer_json(answer), correlation_id=answer.step)


def intervened_input(action: InterventionAction, reason_code: str, at: datetime, **more: str) -> LoggedInput:
    """`more` goes into the log and the ledger: the note's hash, and the bulk order it is part of."""
    said = {"action": action.value, "reason_code": reason_code} | more
    return LoggedInput(Intervened(at, action, reason_code), INTERVENED, "person", envelope=said)


def answer_json(answer: GateAnswered) -> dict[str, Any]:
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


def input_of(row: WorkflowEvent) -> Input | None:
    """The input that the engine got then; None for an event that never reached it (a start that was queued)."""
    step = row.correlation_id
    if row.event_type in {TRIGGER, STARTED}:
        return Started(row.at) if row.outcome == EventOutcome.ADVANCED else None
    if row.event_type == DEADLINE:
        return DeadlinePassed(row.at)
    if row.event_type == GATE:
        return answer_from_json(row.envelope)
    if row.event_type == INTERVENED:
        return Intervened(row.at, InterventionAction(row.envelope["action"]), row.envelope["reason_code"])
    if row.event_type in {TIMED_OUT, RETRY_DUE}:
        if step is None:
            raise ValueError(f"{row.event_type} without a step")
        return TimedOut(row.at, step) if row.event_type == TIMED_OUT else RetryDue(row.at, step)
    allowed = row.facts.get("retries_allowed", True)
    return StepReported(row.at, row.event_type, step, row.envelope.get("payload"), allowed, row.source == "person")
