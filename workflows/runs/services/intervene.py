"""Interventions of people (S4 5.9): retry-step, cancel, supersede, halt, resume. Each has a reason code and is
recorded."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.quarantine.selectors import quarantine_finding
from attempts.quarantine.states import InvestigatedOutcome
from governance.boundary.models import Note
from governance.boundary.services import note_create
from governance.contracts.states import Effect
from governance.ledger.services import actor_reference
from governance.sql.insert import insert_together
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require, reason_code_resolve
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.starting import input_problems
from workflows.engine.inputs import Started
from workflows.engine.interventions import GOES_ON, why_not
from workflows.events.models import OutboxEvent
from workflows.events.services.outbox import relay_wake_up
from workflows.runs.errors import InterventionNotLegal, NoSlotFree, OutcomeUnresolved
from workflows.runs.models import BulkIntervention, WorkflowInstance, WorkflowIntervention, WorkflowStep
from workflows.runs.selectors.locked import definition_read, kind_of
from workflows.runs.selectors.run import current_step, instance_lock
from workflows.runs.selectors.start import definition_for, definition_named
from workflows.runs.services.advance import STARTED, Advanced, LoggedInput, instance_advance, intervened_input
from workflows.runs.services.effects import outgoing
from workflows.runs.services.metrics import INTERVENTIONS
from workflows.runs.services.start import case_origin, has_concurrency_slot, instance_begin, instance_build
from workflows.runs.states import STEP_OPEN, InstanceStatus, InterventionAction, StepStatus


@dataclass(frozen=True, slots=True)
class InterventionOrder:
    """What to do to a run, and why."""

    action: InterventionAction
    reason_code: str
    note: str = ""
    step: UUID | None = None  # which of several steps that wait for their retry
    bulk: BulkIntervention | None = None  # the order for many that this is part of; its note is this one's


def instance_intervene(
    *, instance_id: UUID, order: InterventionOrder, actor: Actor, at: datetime, region: str
) -> WorkflowIntervention:
    """For every action but `supersede`, which creates a second run."""
    with transaction.atomic():
        instance = instance_lock(instance_id=instance_id)
        if not actor.may_act_in(instance.organization_id):
            raise NotFound
        return _intervention_apply(instance, order, actor=actor, at=at, region=region)


def _intervention_apply(
    instance: WorkflowInstance, order: InterventionOrder, *, actor: Actor, at: datetime, region: str
) -> WorkflowIntervention:
    """For a run that is locked."""
    reason_code_known(instance.organization_id, order)
    _legal_or_refuse(instance, order, at=at)
    note = order.bulk.note if order.bulk else note_create(organization_id=instance.organization_id, text=order.note)
    # Read before the advance changes the instance: an intervention records the run before and after it.
    before = run_summary(instance)
    logged = intervened_input(order.action, order.reason_code, at, order.step, **_said(order, note))
    advanced = instance_advance(instance=instance, logged=logged, actor=actor, at=at, region=region)
    if order.action in {InterventionAction.CANCEL, InterventionAction.SUPERSEDE}:
        instance.cancelled_reason = order.reason_code
        instance.save(update_fields=["cancelled_reason"])
    return intervention_record(advanced, order, note, before, actor=actor, at=at)


def _said(order: InterventionOrder, note: Note | None) -> dict[str, str]:
    bulk = {"bulk": str(order.bulk.id)} if order.bulk else {}
    return bulk | ({"note": str(note.id), "note_sha256": note.sha256} if note else {})


def reason_code_known(organization_id: UUID, order: InterventionOrder) -> None:
    """Require a halt reason for a halt, and for everything else a halt reason or an intervention reason, of which a
    refusal lists the latter."""
    scope = Scope.HALT
    if order.action != InterventionAction.HALT and not reason_code_resolve(
        organization_id=organization_id, scope=Scope.HALT, code=order.reason_code
    ):
        scope = Scope.INTERVENTION
    reason_code_require(organization_id=organization_id, scope=scope, code=order.reason_code, note=order.note)


def _legal_or_refuse(instance: WorkflowInstance, order: InterventionOrder, *, at: datetime) -> None:
    action, overdue = order.action, instance.deadline_at <= at
    under_way = _under_way(instance, order) if action in GOES_ON else ""
    if refusal := why_not(action, state=instance.state, overdue=overdue, under_way=under_way):
        raise InterventionNotLegal(refusal)
    if action in GOES_ON:
        _resolved_or_refuse(instance)
        if instance.state == InstanceStatus.HALTED and not has_concurrency_slot(organization=instance.organization):
            raise NoSlotFree


def _under_way(instance: WorkflowInstance, order: InterventionOrder) -> str:
    """The open step, unless it only waits for its retry. Refuses an order that does not say which of several is
    meant."""
    if not instance.tokens or instance.state == InstanceStatus.HALTED:
        step = current_step(instance_id=instance.id)
        return step.step_id if step and step.state != StepStatus.PENDING else ""
    open_steps = list(WorkflowStep.objects.filter(instance=instance, state__in=STEP_OPEN).order_by("number"))
    waiting = [step for step in open_steps if step.state == StepStatus.PENDING]
    meant = [step for step in waiting if order.step in {None, step.id}]
    if len(meant) > 1:
        names = ", ".join(f"{step.step_id} ({step.id})" for step in meant[:20])
        raise InterventionNotLegal(f"Several steps wait for their retry. Say in `step` which one is meant: {names}.")
    if meant or not open_steps:
        return ""
    return next((step.step_id for step in open_steps if step.id == order.step), open_steps[-1].step_id)


def _resolved_or_refuse(instance: WorkflowInstance) -> None:
    """Refuse to repeat a step of effect `once` while it is unknown whether its last try had its effect."""
    turns = [(turn.get("scope", ""), turn.get("step_id", "")) for turn in instance.tokens.get("waiting", ())]
    for scope, step_id in turns or [("", instance.resume_step_id)]:
        rows = WorkflowStep.objects.filter(instance=instance, step_id=step_id, scope=scope)
        last = rows.order_by("-number").first()
        known = kind_of(instance, last.step_id) if last else None
        if last is None or last.governed_attempt is None or known is None or known.effect != Effect.ONCE:
            continue
        if quarantine_finding(attempt_id=last.governed_attempt) not in {None, InvestigatedOutcome.DID_NOT_HAPPEN}:
            raise OutcomeUnresolved


def run_summary(instance: WorkflowInstance) -> dict[str, Any]:
    """What `before_state` and `after_state` of an intervention contain."""
    step = current_step(instance_id=instance.id)
    return {
        "status": instance.state,
        "halt_reason": instance.halt_reason,
        "halt_step_id": instance.halt_step_id,
        "step": {"step_id": step.step_id, "attempt": step.attempt, "status": step.state} if step else None,
    }


def intervention_record(
    advanced: Advanced,
    order: InterventionOrder,
    note: Note | None,
    before: dict[str, Any],
    *,
    actor: Actor,
    at: datetime,
) -> WorkflowIntervention:
    instance = advanced.instance
    intervention = WorkflowIntervention(
        instance=instance,
        action=order.action,
        actor_kind=actor.kind.value,
        actor_ref=actor_reference(actor),
        reason_code=order.reason_code,
        note=note,
        bulk=order.bulk,
        before_state=before,
        after_state=run_summary(instance),
        created_at=at,
    )
    insert_together([intervention], [_event(advanced, order, actor=actor, at=at)])
    instance.save(update_fields=["emitted"])
    relay_wake_up()
    # After the commit: an intervention that is rolled back must not be counted.
    transaction.on_commit(lambda: INTERVENTIONS.labels(order.action.value).inc())
    return intervention


def _event(advanced: Advanced, order: InterventionOrder, *, actor: Actor, at: datetime) -> OutboxEvent:
    instance = advanced.instance
    payload = {
        "instance_id": str(instance.id),
        "action": order.action.value,
        "performed_by": actor_reference(actor) or actor.kind.value,
        "reason_code": order.reason_code,
    }
    return outgoing(instance, "workflow.intervened", payload, str(instance.id), advanced.event, at)


def instance_supersede(
    *, instance_id: UUID, order: InterventionOrder, actor: Actor, at: datetime, region: str
) -> tuple[WorkflowIntervention, WorkflowInstance]:
    """Cancel the old run and start a new one for its case. Returns the intervention and the new run."""
    with transaction.atomic():
        old = instance_lock(instance_id=instance_id)
        if not actor.may_act_in(old.organization_id):
            raise NotFound
        envelope = case_origin(old)
        definition = _following(old)
        intervention = _intervention_apply(old, order, actor=actor, at=at, region=region)
        new = instance_build(definition=definition, envelope=envelope, at=at)
        # A unique index allows one run per case that is not superseded, so the old row must change before the new one
        # is inserted. The foreign key is checked at commit, when the new row exists.
        old.superseded_by_id, old.cancelled_reason = new.id, f"superseded_by:{new.id}"
        old.save(update_fields=["superseded_by", "cancelled_reason"])
        logged = LoggedInput(Started(at), STARTED, "person", envelope={"supersedes": str(old.id)})
        instance_begin(instance=new, logged=logged, actor=actor, at=at, region=region)
    return intervention, new


def _following(old: WorkflowInstance) -> WorkflowDefinition:
    """The definition under which the case runs anew."""
    product_id = UUID(old.context["product_id"])
    if old.business_key:
        found = definition_named(organization_id=old.organization_id, product_id=product_id, slug=old.definition_slug)
    else:
        found = definition_for(organization_id=old.organization_id, product_id=product_id)
    if found is None:
        raise InterventionNotLegal("There is no active definition to run the case under.")
    if input_problems(definition_read(found), old.input or {}):
        raise InterventionNotLegal("What the run was started with does not fit the input of the active definition.")
    return found


@dataclass(frozen=True, slots=True)
class Acted:
    """The intervention, and after `supersede` the run that replaced the old one."""

    intervention: WorkflowIntervention
    successor: WorkflowInstance | None = None


@violations_recorded
def instance_act(*, instance_id: UUID, order: InterventionOrder, actor: Actor, at: datetime, region: str) -> Acted:
    if order.action == InterventionAction.SUPERSEDE:
        done, successor = instance_supersede(instance_id=instance_id, order=order, actor=actor, at=at, region=region)
        return Acted(done, successor)
    return Acted(instance_intervene(instance_id=instance_id, order=order, actor=actor, at=at, region=region))
