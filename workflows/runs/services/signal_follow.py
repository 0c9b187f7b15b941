"""Follows signals: a denied attempt, a person's answer, an expired review. Also resumes the step of a released
attempt."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.execution.services.recheck import Go
from attempts.lifecycle.selectors.attempts import attempt_origin
from attempts.reviews.states import ReviewStatus
from attempts.steps.services.settle import step_dispatch
from reasoncodes.base.actors import CLOCK, SYSTEM, Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from workflows.engine.inputs import GateAnswered, StepReported
from workflows.kinds.assign_reviewer import KIND
from workflows.runs.models import Nudge, WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import contract_allows_retries, kind_of
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.advance import (
    LoggedInput,
    gate_answered_input,
    instance_advance,
    retry_due_input,
    timed_out_input,
)
from workflows.runs.services.people import ASSIGN, reviewer_choose
from workflows.runs.services.signal import PERFORMED
from workflows.runs.states import StepStatus

# What the log keeps of a person's answer beside the payload: the review, and the reference to an overriding result.
NOBODY = "no_reviewer"
KEPT = ("review", "result_ref", "result_sha256")


def signal_follow(*, signal_id: UUID, at: datetime, region: str) -> bool:
    """False: it was followed already, or belongs to no step."""
    with transaction.atomic():
        found = Nudge.objects.filter(id=signal_id).first()
        if found is None:
            return False
        step = WorkflowStep.objects.filter(id=found.step).first()
        if step is None:  # no step of ours
            found.delete()
            return False
        # Lock order: run, then signal; the engine locks the run first everywhere. SKIP LOCKED: the transaction that has
        # the signal is following it.
        instance = instance_lock(instance_id=step.instance_id)
        signal = Nudge.objects.select_for_update(skip_locked=True).filter(id=signal_id).first()
        if signal is None:
            return False
        logged = _logged_input(instance, signal, _concerned(signal, step))
        instance_advance(instance=instance, logged=logged, actor=_actor(signal), at=at, region=region)
        signal.delete()
    return True


def _concerned(signal: Nudge, step: WorkflowStep) -> WorkflowStep:
    """The try that the signal is about. A review belongs to one try; an attempt to all retries of it."""
    # Without this check a decision about an earlier attempt would answer a later try of the same step.
    newest = _current_try(step)
    if signal.kind == "attempt" and str(newest.governed_attempt) == signal.payload["attempt"]:
        return newest
    return step


def _current_try(step: WorkflowStep) -> WorkflowStep:
    """The newest try of the same step: an attempt can have several tries."""
    rows = WorkflowStep.objects.filter(instance_id=step.instance_id, step_id=step.step_id, scope=step.scope)
    return rows.order_by("-number").first() or step


def _logged_input(instance: WorkflowInstance, signal: Nudge, step: WorkflowStep) -> LoggedInput:
    said = signal.payload
    if signal.kind == "call":
        return _called(instance, signal, step, said)
    if signal.kind == ASSIGN:
        return _assigned(instance, signal, step)
    if signal.kind == "attempt":
        return gate_answered_input(GateAnswered(signal.at, step.id, said["verdict"], said["reason_code"]))
    if signal.kind == PERFORMED:
        return _performed(instance, signal, step)
    if said["status"] == ReviewStatus.EXPIRED:
        return timed_out_input(step.id, max(step.timeout_at or signal.at, signal.at))
    return _answered(instance, signal, step, said)


def _performed(instance: WorkflowInstance, signal: Nudge, step: WorkflowStep) -> LoggedInput:
    known = kind_of(instance, step.step_id)
    name = known.completion.name if known and known.completion else ""
    report = StepReported(signal.at, name, step.id, signal.payload)
    return LoggedInput(report, name, "clock", envelope={"payload": signal.payload}, correlation_id=step.id)


def _answered(instance: WorkflowInstance, signal: Nudge, step: WorkflowStep, said: dict[str, Any]) -> LoggedInput:
    """A person's answer, in the form of the completion that the human-review module would send."""
    known = kind_of(instance, step.step_id)
    name = known.completion.name if known and known.completion else ""
    payload: dict[str, Any] = {"decision": said["decision"], "reviewer_id": said["reviewer_id"]}
    # Of an override: later steps and the receiver of the final event are told where the judgement is kept.
    payload |= {name: said[name] for name in ("result_ref", "result_sha256") if said.get(name)}
    if "outcome" in said:
        payload = {"outcome": said["outcome"], "reviewer": said["reviewer_id"], "form": said["form"]}
    return LoggedInput(
        input=StepReported(signal.at, name, step.id, payload, by_person=True),
        event_type=name,
        source="person",
        envelope={"payload": payload} | {name: said[name] for name in KEPT if name in said},
        correlation_id=step.id,
    )


def _called(instance: WorkflowInstance, signal: Nudge, step: WorkflowStep, said: dict[str, Any]) -> LoggedInput:
    """What a module answered over HTTP, in the form of the event that it would have sent."""
    payload, allowed = said["payload"], contract_allows_retries(instance, step_id=step.step_id)
    facts = ({} if allowed else {"retries_allowed": False}) | ({"unknown": True} if said["unknown"] else {})
    return LoggedInput(
        input=StepReported(signal.at, said["event_type"], step.id, payload, allowed, unknown=said["unknown"]),
        event_type=said["event_type"],
        source="module",
        envelope={} if payload is None else {"payload": payload},
        correlation_id=step.id,
        facts=facts,
    )


def _assigned(instance: WorkflowInstance, signal: Nudge, step: WorkflowStep) -> LoggedInput:
    """The reviewer whom Holdpoint chose now, as the engine's input; or that nobody of the tier fits."""
    person = reviewer_choose(instance=instance, asked=signal.payload)
    event = KIND.completion
    payload: dict[str, Any] = {"reviewer": person}
    if not person:
        event, payload = KIND.failure, {"reason_code": NOBODY, "retryable": False}
    name = event.name if event is not None else ""
    return LoggedInput(
        input=StepReported(signal.at, name, step.id, payload),
        event_type=name,
        source="clock",
        envelope={"payload": payload},
        correlation_id=step.id,
    )


def _actor(signal: Nudge) -> Actor:
    """The clock or the system: the ledger entry of the decision itself names the person."""
    return CLOCK if signal.actor_kind == ActorKind.CLOCK else SYSTEM


def step_resume(*, attempt_id: UUID, at: datetime, region: str) -> None:
    """Continue the step of a released attempt. Does nothing if the step no longer waits for it."""
    with every_tenant(), transaction.atomic():
        origin = attempt_origin(attempt_id=attempt_id)
        first = WorkflowStep.objects.filter(id=origin).first() if origin else None
        if first is None:
            return
        instance = instance_lock(instance_id=first.instance_id)
        step = _current_try(first)
        if step.state == StepStatus.PENDING and step.next_eligible_at is not None and step.next_eligible_at <= at:
            logged = retry_due_input(step.id, at)
        elif step.state == StepStatus.WAITING_APPROVAL and step.governed_attempt == attempt_id:
            answer = _dispatch(step, attempt_id, at)
            if answer is None:
                return
            instance.writes += answer.verdict == "allow"
            logged = gate_answered_input(answer)
        else:
            return
        instance_advance(instance=instance, logged=logged, actor=SYSTEM, at=at, region=region)


def _dispatch(step: WorkflowStep, attempt_id: UUID, at: datetime) -> GateAnswered | None:
    """None: not yet. The step stays held, and the next wake-up or scheduled task tries again."""
    leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=at)
    if leases.granted:
        return GateAnswered(at, step.id, "allow")
    if not leases.refused or leases.refused[0][1].go in {Go.HOLD, Go.REVIEW}:
        return None
    return GateAnswered(at, step.id, "deny", leases.refused[0][1].reason_code or "outcome_unknown")
