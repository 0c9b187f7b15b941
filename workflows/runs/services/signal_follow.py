"""Takes a nudge off and lets the engine know: a refused attempt, a person's answer, a review that expired."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.execution.services.recheck import Go
from attempts.lifecycle.selectors.attempts import origin_of
from attempts.reviews.states import ReviewStatus
from attempts.steps.services.settle import step_dispatch
from reasoncodes.base.actors import CLOCK, SYSTEM, Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from workflows.engine.inputs import GateAnswered, Reported
from workflows.kinds.registry import kind
from workflows.runs.models import Nudge, WorkflowStep
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.advance import instance_advance
from workflows.runs.services.logged_input import Happening, gate_answered, retry_due, timed_out
from workflows.runs.states import StepStatus

# Of a person's answer, what the log keeps beside it: the review, and where an overriding judgement is written down.
KEPT = ("review", "result_ref", "result_sha256")


def nudge_follow(*, nudge_id: UUID, at: datetime, region: str) -> bool:
    """False: somebody else has followed it. The lock order is the engine's: instance first, then the nudge."""
    with transaction.atomic():
        found = Nudge.objects.filter(id=nudge_id).first()
        if found is None:
            return False
        step = WorkflowStep.objects.filter(id=found.step).first()
        if step is None:  # no step of ours
            found.delete()
            return False
        instance = instance_lock(instance_id=step.instance_id)
        nudge = Nudge.objects.select_for_update(skip_locked=True).filter(id=nudge_id).first()
        if nudge is None:
            return False
        happening = _happening(nudge, _concerned(nudge, step))
        instance_advance(instance=instance, happening=happening, actor=_actor(nudge), at=at, region=region)
        nudge.delete()
    return True


def _concerned(nudge: Nudge, step: WorkflowStep) -> WorkflowStep:
    """What was said about an earlier try must not answer the next. A review belongs to one try; an attempt to all
    that are retries of it."""
    newest = current_try(step)
    if nudge.kind == "attempt" and str(newest.governed_attempt) == nudge.payload["attempt"]:
        return newest
    return step


def current_try(step: WorkflowStep) -> WorkflowStep:
    """An attempt outlives the tries of its step: what is said about it concerns the newest one."""
    rows = WorkflowStep.objects.filter(instance_id=step.instance_id, step_id=step.step_id)
    return rows.order_by("-number").first() or step


def _happening(nudge: Nudge, step: WorkflowStep) -> Happening:
    said = nudge.payload
    if nudge.kind == "attempt":
        return gate_answered(GateAnswered(nudge.at, step.id, said["verdict"], said["reason_code"]))
    if said["status"] == ReviewStatus.EXPIRED:
        return timed_out(step.id, step.timeout_at or nudge.at)
    return _answered(nudge, step, said)


def _answered(nudge: Nudge, step: WorkflowStep, said: dict[str, Any]) -> Happening:
    """A person's answer in our own queue counts as the module's would."""
    known = kind(step.step_kind)
    name = known.completion.name if known and known.completion else ""
    payload = {"decision": said["decision"], "reviewer_id": said["reviewer_id"]}
    return Happening(
        input=Reported(nudge.at, name, step.id, payload, by_person=True),
        event_type=name,
        source="person",
        envelope={"payload": payload} | {name: said[name] for name in KEPT if name in said},
        correlation_id=step.id,
    )


def _actor(nudge: Nudge) -> Actor:
    """Who decided is on the ledger with the decision; the engine only follows."""
    return CLOCK if nudge.actor_kind == ActorKind.CLOCK else SYSTEM


def step_ready(*, attempt_id: UUID, at: datetime, region: str) -> None:
    """Called by the worker's dispatch and by its tick; does nothing when the step is no longer waiting for it."""
    with every_tenant(), transaction.atomic():
        origin = origin_of(attempt_id=attempt_id)
        first = WorkflowStep.objects.filter(id=origin).first() if origin else None
        if first is None:
            return
        instance = instance_lock(instance_id=first.instance_id)
        step = current_try(first)
        if step.status == StepStatus.PENDING and step.next_eligible_at is not None and step.next_eligible_at <= at:
            happening = retry_due(step.id, at)
        elif step.status == StepStatus.WAITING_APPROVAL and step.governed_attempt == attempt_id:
            answer = _dispatch(step, attempt_id, at)
            if answer is None:
                return
            instance.writes += answer.verdict == "allow"
            happening = gate_answered(answer)
        else:
            return
        instance_advance(instance=instance, happening=happening, actor=SYSTEM, at=at, region=region)


def _dispatch(step: WorkflowStep, attempt_id: UUID, at: datetime) -> GateAnswered | None:
    """None: not yet; it stays held and the next ring tries again."""
    leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=at)
    if leases.granted:
        return GateAnswered(at, step.id, "allow")
    if not leases.refused or leases.refused[0][1].go is Go.HOLD:
        return None
    return GateAnswered(at, step.id, "deny", leases.refused[0][1].reason_code or "outcome_unknown")
