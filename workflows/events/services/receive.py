"""Receives events of modules: each event_id once, matched to its run, and logged whatever its outcome is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.violations.errors import CrossTenant
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError
from workflows.definitions.states import Mode
from workflows.engine.inputs import StepReported
from workflows.events.errors import EventInvalid
from workflows.events.models import WorkflowEvent
from workflows.events.rules import correlation_of, envelope_shape_problems, event_type, payload_problems, storable
from workflows.events.services.keep import event_keep
from workflows.events.services.permitted import event_permitted
from workflows.events.states import EventOutcome
from workflows.kinds.base import ShapeProblem
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.rules import REQUESTED
from workflows.runs.selectors.locked import contract_allows_retries, instance_locked_by_event, kind_of
from workflows.runs.services.advance import TRIGGER, LoggedInput, instance_advance
from workflows.runs.services.request import case_named, run_request
from workflows.runs.services.start import instance_start
from workflows.runs.states import STEP_OPEN, StepStatus


@dataclass(frozen=True, slots=True)
class Received:
    event: WorkflowEvent
    duplicate: bool = False


@violations_recorded
def event_receive(*, envelope: Any, actor: Actor, at: datetime, region: str) -> Received:
    """Receive an event and advance its run, in one transaction. The same event_id again changes nothing."""
    problems = envelope_shape_problems(envelope)
    if not problems:
        known = event_type(envelope["event_type"], envelope["schema_version"])
        if known is not None and known.direction != "in":
            problems = [
                ShapeProblem("/event_type", "is emitted by Holdpoint itself; modules do not send it", "direction")
            ]
    if problems:
        raise _invalid(problems)
    if envelope["event_type"] == REQUESTED:
        envelope = case_named(envelope)
    organization_id = UUID(envelope["org_id"])
    if not actor.may_act_in(organization_id):
        raise CrossTenant(subject_type="organization", subject_id=organization_id)
    event_permitted(actor=actor, organization_id=organization_id, event_type=envelope["event_type"])
    try:
        with transaction.atomic():
            return _take_in(envelope, organization_id, actor, at, region)
    # The same event, or another one about the same new case, committed first, and a unique index refused this one. Once
    # more finds what it wrote.
    except IntegrityError:
        with transaction.atomic():
            return _take_in(envelope, organization_id, actor, at, region)


def _take_in(envelope: dict[str, Any], organization_id: UUID, actor: Actor, at: datetime, region: str) -> Received:
    event = event_apply(envelope=envelope, actor=actor, at=at, region=region)
    if event is not None:
        # The same request under another event id: a run goes on, and nothing was started.
        again = event.event_type == REQUESTED and event.outcome == EventOutcome.IGNORED and event.number is None
        return Received(event, duplicate=again)
    known = WorkflowEvent.objects.get(organization_id=organization_id, event_id=UUID(envelope["event_id"]))
    return Received(known, duplicate=True)


def event_apply(
    *, envelope: dict[str, Any], actor: Actor, at: datetime, region: str, redrives: UUID | None = None
) -> WorkflowEvent | None:
    """In the caller's transaction. `redrives`: the unmatched event that a person processes again; the new row has no
    event_id, which is taken by the old one. None: an event with this event_id was received before; nothing was done."""
    problems = _payload_problems(envelope)
    if start := STARTS.get(envelope["event_type"]):
        if problems:
            _known_or_refuse(envelope, problems)
            return None
        return start(envelope=storable(envelope), actor=actor, at=at, region=region, redrives=redrives)
    correlation = correlation_of(envelope)
    found = instance_locked_by_event(
        organization_id=UUID(envelope["org_id"]),
        case_id=UUID(envelope["case_id"]),
        correlation_id=correlation,
        event_id=None if redrives else UUID(envelope["event_id"]),
    )
    if found.known:
        return None
    instance = found.instance
    # A bad answer to the open step is logged and fails that step. Any other bad event is refused, and nothing is
    # stored.
    if problems and (instance is None or not _awaited(instance, envelope["event_type"], correlation)):
        raise _invalid(problems)
    if instance is None:
        return event_keep(envelope=storable(envelope), at=at, redrives=redrives)
    logged = _logged_input(instance, envelope, correlation, fits=not problems, at=at, redrives=redrives)
    return instance_advance(instance=instance, logged=logged, actor=actor, at=at, region=region).event


STARTS = {TRIGGER: instance_start, REQUESTED: run_request}


def _known_or_refuse(envelope: dict[str, Any], problems: list[ShapeProblem]) -> None:
    """Refuse an invalid event, unless it was received before: a repeated delivery gets the answer it had."""
    if not WorkflowEvent.objects.filter(organization_id=envelope["org_id"], event_id=envelope["event_id"]).exists():
        raise _invalid(problems)


def _logged_input(
    instance: WorkflowInstance,
    envelope: dict[str, Any],
    correlation: UUID | None,
    *,
    fits: bool,
    at: datetime,
    redrives: UUID | None,
) -> LoggedInput:
    """The input, with what the log keeps. A payload that does not fit its schema is not stored: it may contain
    anything."""
    kept = storable(envelope) if fits else {name: value for name, value in envelope.items() if name != "payload"}
    answered = next((step for step in instance.locked_steps or () if step.id == correlation), None)
    allowed = contract_allows_retries(instance, step_id=answered.step_id if answered else "")
    # It was reported as failed before. What follows is the engine's; events that were logged without this fact are
    # replayed as they were.
    failed = answered is not None and answered.state == StepStatus.FAILED
    facts = ({} if allowed else {"retries_allowed": False}) | ({"contradicts": True} if failed else {})
    return LoggedInput(
        input=StepReported(at, envelope["event_type"], correlation, kept.get("payload"), allowed, contradicts=failed),
        event_type=envelope["event_type"],
        source="module",
        envelope=kept,
        event_id=None if redrives else UUID(envelope["event_id"]),
        correlation_id=correlation,
        facts=facts,
        redrives=redrives,
    )


def _awaited(instance: WorkflowInstance, name: str, correlation: UUID | None) -> bool:
    """Whether this is the answer that an open step waits for. Only then does its bad shape fail the step."""
    open_steps = [step for step in instance.locked_steps or () if step.state in STEP_OPEN]
    return any(_awaits(instance, step, name, correlation) for step in open_steps)


def _awaits(instance: WorkflowInstance, step: WorkflowStep, name: str, correlation: UUID | None) -> bool:
    awaited = kind_of(instance, step.step_id)
    names = {event.name for event in (awaited.completion, awaited.failure) if event} if awaited else set()
    asked = step.id == correlation and step.state == StepStatus.IN_PROGRESS
    return name in names and (instance.mode == Mode.CLIENT_DRIVEN or asked)


def _payload_problems(envelope: dict[str, Any]) -> list[ShapeProblem]:
    known = event_type(envelope["event_type"], envelope["schema_version"])
    return payload_problems(known, envelope["payload"]) if known else []


def _invalid(problems: list[ShapeProblem]) -> EventInvalid:
    return EventInvalid(errors=[FieldError(one.pointer, one.message, rule=one.rule) for one in problems])
