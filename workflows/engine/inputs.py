"""Every input of the engine. Each one is in the run's event log, so that replay can feed the same inputs again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from workflows.runs.states import InterventionAction


@dataclass(frozen=True, slots=True)
class Started:
    at: datetime


@dataclass(frozen=True, slots=True)
class StepReported:
    """A module's completion or failure, or a person's answer to a human-review step. `payload` None: it did not fit its
    schema and was not kept."""

    at: datetime
    event_type: str
    correlation_id: UUID | None
    payload: dict[str, Any] | None
    retries_allowed: bool = True
    by_person: bool = False  # an answer from our own review queue
    contradicts: bool = False  # an answer to a try that its module had already reported as failed
    unknown: bool = False  # its request may have arrived, and no answer says what became of it


@dataclass(frozen=True, slots=True)
class GateAnswered:
    """What the gate answered about a step's request: allow, hold, later or deny."""

    at: datetime
    step: UUID
    verdict: str
    reason_code: str = ""
    retry_after: int = 0


@dataclass(frozen=True, slots=True)
class TimedOut:
    # `at` is the step's timeout and not the moment when the scheduled task ran: a late task must not change the record.

    at: datetime
    step: UUID


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    at: datetime


@dataclass(frozen=True, slots=True)
class RetryDue:
    at: datetime
    step: UUID


@dataclass(frozen=True, slots=True)
class Overdue:
    """A step with `due_seconds` was not done by then."""

    at: datetime
    step: UUID


@dataclass(frozen=True, slots=True)
class Postponed:
    """The time of a step (without one: of the run) counts longer, because Holdpoint itself could not act, or because
    the request was published late. `at` is the time as it was, and not when that was noticed."""

    at: datetime
    until: datetime
    step: UUID | None = None


@dataclass(frozen=True, slots=True)
class Migrated:
    """The run goes on under another version of its definition. `mapping`: old step to new step, where they differ."""

    at: datetime
    mapping: Mapping[str, str]
    reason_code: str


@dataclass(frozen=True, slots=True)
class Intervened:
    at: datetime
    action: InterventionAction
    reason_code: str
    step: UUID | None = None  # which of several that wait for their retry


Timer = TimedOut | DeadlinePassed | RetryDue | Overdue | Postponed
Input = Started | StepReported | GateAnswered | Timer | Migrated | Intervened
