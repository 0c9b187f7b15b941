"""The timeline of a run (what happened, and who did it), and its context as a table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from attempts.lifecycle.models import Attempt
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.moves import Move
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowIntervention, WorkflowStep
from workflows.runs.rules import MIGRATED, REQUESTED
from workflows.runs.services.advance import (
    DEADLINE,
    GATE,
    INTERVENED,
    RETRY_DUE,
    STARTED,
    TIMED_OUT,
    TRIGGER,
)

ACTION_WORDS = {
    "retry_step": "Started the step again",
    "cancel": "Cancelled the run",
    "supersede": "Superseded the run",
    "halt": "Halted the run",
    "resume": "Resumed the run",
}
OUTCOME_WORDS = {
    "stale": "Not the answer to the current request. Kept without effect.",
    "late": "Arrived while the run was halted or after it ended. Kept without effect.",
    "drift": "Not what the definition expected at this point. Kept and marked.",
    "ignored": "Already known. Kept with the run.",
}
DRIFT_WORDS = {
    "skipped_gate": "a gate was skipped",
    "wrong_order": "out of the definition's order",
    "unrequested_completion": "an answer without a request",
}
SOURCE_WORDS = {"module": "a module", "clock": "the clock", "gate": "the hold point", "person": "a person"}


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One line of the timeline."""

    at: datetime
    who: str
    what: str
    did: list[str] = field(default_factory=list)
    reason_code: str = ""
    note: str = ""
    tone: str = "plain"
    attempt: UUID | None = None


@dataclass(frozen=True, slots=True)
class TimelineFacts:
    """What the timeline is made of."""

    events: list[WorkflowEvent]
    steps: list[WorkflowStep]
    interventions: list[WorkflowIntervention]
    attempts: Mapping[UUID, Attempt]
    entries: list[LedgerEntry]
    names: Mapping[str, str]


class Recorded(NamedTuple):
    """A move of the run on the ledger, and who made it."""

    actor_kind: str
    actor_ref: str
    move: Move


def run_timeline(told: TimelineFacts) -> list[TimelineLine]:
    """Oldest first: acts of people, events of modules, and the attempts behind the steps, in one list."""
    entries = {
        (move.facts or {}).get("number"): Recorded(entry.actor_kind, entry.actor_ref, move)
        for entry in told.entries
        for move in entry.moves
    }
    done = {one.created_at: one for one in told.interventions}
    tries = {step.id: step for step in told.steps}
    lines = [
        _event(event, entries.get(event.number), done.get(event.received_at), tries, told) for event in told.events
    ]
    lines += [line for attempt in told.attempts.values() for line in _attempt(attempt, told.steps)]
    return sorted(lines, key=lambda line: line.at)


def _event(
    event: WorkflowEvent,
    entry: Recorded | None,
    done: WorkflowIntervention | None,
    tries: Mapping[UUID, WorkflowStep],
    told: TimelineFacts,
) -> TimelineLine:
    intervened = done if event.event_type in {INTERVENED, MIGRATED} else None
    return TimelineLine(
        at=event.received_at,
        who=_who(event, entry, told.names),
        what=_what(event, tries),
        did=_did(event, entry),
        reason_code=entry.move.reason_code if entry else "",
        note=intervened.note.text if intervened and intervened.note else "",
        tone=_tone(event, entry),
    )


def _who(event: WorkflowEvent, entry: Recorded | None, names: Mapping[str, str]) -> str:
    if entry is not None and entry.actor_kind in {"person", "service"}:
        return names.get(entry.actor_ref, "erased" if entry.actor_kind == "person" else entry.actor_ref)
    return SOURCE_WORDS.get(event.source, event.source)


def _what(event: WorkflowEvent, tries: Mapping[UUID, WorkflowStep]) -> str:
    step = tries.get(event.correlation_id) if event.correlation_id else None
    named, said = step.step_id if step else "a step", event.envelope
    words = {
        REQUESTED: "The run was asked for" if event.number == 1 else "The run was asked for again",
        TRIGGER: "The case was created" if event.number == 1 else "The case was announced again",
        STARTED: "Replaced a superseded run" if "supersedes" in said else "Left the queue and started",
        TIMED_OUT: f"{named} timed out",
        RETRY_DUE: f"The retry of {named} was due",
        DEADLINE: "The workflow's deadline passed",
        GATE: f"The hold point said {said.get('verdict')} to {named}",
        INTERVENED: ACTION_WORDS.get(said.get("action", ""), ""),
        MIGRATED: f"Moved to version {said.get('to', {}).get('version', '')} of the definition",
    }
    if event.event_type in words:
        return words[event.event_type]
    if event.source == "person":
        return f"A reviewer answered {named}: {said['payload'].get('decision', '')}"
    return f"{event.event_type} arrived" + (f" for {named}, try {step.attempt}" if step else "")


def _did(event: WorkflowEvent, entry: Recorded | None) -> list[str]:
    path = list((entry.move.facts or {}).get("path", [])) if entry else []
    if event.drift:
        path.append(f"Drift: {DRIFT_WORDS[event.drift]}.")
    if event.outcome in OUTCOME_WORDS and event.outcome != "drift":
        queued = event.number == 1 and event.outcome == "ignored"
        path.append("No slot is free: queued." if queued else OUTCOME_WORDS[event.outcome])
    return path


def _tone(event: WorkflowEvent, entry: Recorded | None) -> str:
    if entry is not None:
        by_action = {"workflow.halted": "bad", "workflow.completed": "good", "workflow.cancelled": "plain"}
        return "info" if event.event_type in {INTERVENED, MIGRATED} else by_action.get(entry.move.action, "plain")
    return "warn" if event.drift or event.outcome in {"late", "stale"} else "plain"


def _attempt(attempt: Attempt, steps: list[WorkflowStep]) -> list[TimelineLine]:
    step = next((one.step_id for one in steps if one.governed_attempt == attempt.id), "a step")
    opened = TimelineLine(attempt.created_at, "the hold point", f"Attempt for {step} opened", attempt=attempt.id)
    if attempt.ended_at is None:
        return [opened]
    tone = {"completed": "good"}.get(attempt.state, "bad")
    ended = TimelineLine(
        attempt.ended_at,
        "the hold point",
        f"Attempt for {step} ended: {attempt.state}",
        reason_code=attempt.reason_code,
        tone=tone,
        attempt=attempt.id,
    )
    return [opened, ended]


def context_table(context: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """What the steps found, by step; before them what the case began with."""
    roots = [(name, _text(value)) for name, value in sorted(context.items()) if not isinstance(value, dict)]
    found = [("the case", roots)] if roots else []
    for name, output in sorted(context.items()):
        if isinstance(output, dict):
            found.append((name, [(key, _text(value)) for key, value in sorted(output.items())]))
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or "none"
    return json.dumps(value, ensure_ascii=False)
