"""Applies the engine's effects: outbox rows, reviews opened and ended, attempts settled."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeGuard
from uuid import UUID

from attempts.reviews.services.human_review import human_review_end, human_review_open
from attempts.steps.services.settle import New, Result, step_settle, step_succeed
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import actor_reference
from governance.sql.insert import Pending
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import current_trace
from workflows.engine.effects import SUCCEEDED, Effect, Emit, EndReview, OpenReview, SendRequest, Settle
from workflows.engine.run import Run
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.events.rules.catalogue import event_type
from workflows.events.rules.envelope import build_envelope
from workflows.events.services.outbox import relay_wake_up
from workflows.runs.models import WorkflowInstance, WorkflowStep


def outbox_rows(
    instance: WorkflowInstance, run: Run, event: WorkflowEvent, *, actor: Actor, at: datetime
) -> list[OutboxEvent]:
    """Outbox rows for requests and lifecycle events. A request's correlation id is its step, an event's is the run."""
    rows = []
    for effect in run.effects:
        if isinstance(effect, SendRequest):
            rows.append(outgoing(instance, effect.event_type, effect.payload, str(effect.step), event, at))
        elif isinstance(effect, Emit):
            payload = effect.payload
            if effect.event_type == "workflow.cancelled":
                payload = payload | {"cancelled_by": actor_reference(actor) or actor.kind.value}
            rows.append(outgoing(instance, effect.event_type, payload, str(instance.id), event, at))
    if rows:
        relay_wake_up()
    return rows


def outgoing(
    instance: WorkflowInstance,
    name: str,
    payload: dict[str, Any],
    correlation_id: str,
    cause: WorkflowEvent,
    at: datetime,
) -> OutboxEvent:
    known, event_id, trace = event_type(name), uuid7(), current_trace()
    if known is None:
        raise ValueError(f"there is no event type {name}")
    # Numbered per run under the run's lock: the relay publishes the events of a run in this order.
    instance.emitted += 1
    envelope = build_envelope(
        event=known,
        event_id=str(event_id),
        occurred_at=at,
        correlation_id=correlation_id,
        causation_id=str(cause.event_id) if cause.event_id else None,
        traceparent=trace.traceparent if trace else None,
        case_id=str(instance.case_id),
        org_id=str(instance.organization_id),
        product_id=instance.context["product_id"],
        payload=payload,
    )
    return new_row(
        OutboxEvent,
        id=event_id,
        organization_id=instance.organization_id,
        instance_id=instance.id,
        number=instance.emitted,
        event_type=name,
        envelope=envelope,
        next_try_at=at,
        created_at=at,
    )


def successes_join(
    run: Run, rows: Sequence[WorkflowStep], pending: Pending, opened: Mapping[UUID, New], *, actor: Actor, at: datetime
) -> None:
    """Add the rows of attempts that succeeded to the statement that writes the advance."""
    attempts = {row.id: row.governed_attempt for row in rows}
    for effect in run.effects:
        attempt_id = attempts[effect.step] if _is_success(effect) else None
        if attempt_id is not None:
            new = opened.get(attempt_id)
            step_succeed(attempt_id=attempt_id, pending=pending, new=new, actor=actor, at=at)


def _is_success(effect: Effect) -> TypeGuard[Settle]:
    return isinstance(effect, Settle) and effect.result == SUCCEEDED


def effects_apply(
    instance: WorkflowInstance, run: Run, rows: Sequence[WorkflowStep], *, actor: Actor, at: datetime
) -> None:
    """Apply what needs the written rows: reviews, and attempts that did not succeed."""
    by_id = {row.id: row for row in rows}
    for effect in run.effects:
        if isinstance(effect, OpenReview):
            _review(instance, effect, by_id[effect.step], actor=actor, at=at)
        elif isinstance(effect, EndReview):
            human_review_end(origin_step=effect.step, actor=actor, at=at, reason_code=effect.reason_code)
        elif isinstance(effect, Settle) and not _is_success(effect):
            _settle(effect, rows, by_id[effect.step], actor=actor, at=at)


def _review(instance: WorkflowInstance, effect: OpenReview, step: WorkflowStep, *, actor: Actor, at: datetime) -> None:
    # The hash binds the review to the step, the definition and the context that the person decides about.
    shown = {"step": str(step.id), "definition": instance.definition_sha256, "context": instance.context}
    human_review_open(
        organization_id=instance.organization_id,
        origin_step=step.id,
        tier=effect.tier,
        context_ref=f"case/{instance.case_id}",
        label=effect.step_id,
        digest=canonical_sha256(shown),
        expires_at=step.timeout_at,
        actor=actor,
        at=at,
    )


def _settle(effect: Settle, rows: Sequence[WorkflowStep], step: WorkflowStep, *, actor: Actor, at: datetime) -> None:
    if step.governed_attempt is None:  # it was refused before an attempt was opened
        return
    following = next((row for row in rows if row.step_id == step.step_id and row.attempt == step.attempt + 1), None)
    step_settle(
        attempt_id=step.governed_attempt,
        result=Result(effect.result),
        actor=actor,
        at=at,
        reason_code=effect.reason_code,
        due_at=following.next_eligible_at if following and effect.result == Result.RETRY else None,
    )
