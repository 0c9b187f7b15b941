"""What the engine asks for: the gate before a request, outbox rows, reviews opened and ended, attempts settled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeGuard
from uuid import UUID, uuid5

from attempts.execution.services.recheck import Go
from attempts.intake.services.door import intake_pass_ours
from attempts.lifecycle.states import PatientContext
from attempts.reviews.services.human_review import human_review_end, human_review_open
from attempts.reviews.services.human_task import human_task_open
from attempts.steps.services.open import attempt_open
from attempts.steps.services.settle import New, Result, step_dispatch, step_settle, step_succeed
from governance.boundary.models import Note
from governance.boundary.rules import facts_carried
from governance.enforcement.models import facts_declared, snapshot_load
from governance.enforcement.selectors import OwnArrival
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import actor_reference
from governance.sql.insert import Pending
from governance.sql.statements import new_row
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.errors import AttemptCreationDisabled
from reasoncodes.base.ids import uuid7
from reasoncodes.base.trace import current_trace, trace_or_new
from workflows.engine.effects import (
    SUCCEEDED,
    AskGate,
    Effect,
    Emit,
    EndReview,
    OpenReview,
    Perform,
    SendRequest,
    Settle,
)
from workflows.engine.inputs import GateAnswered
from workflows.engine.state import InstanceState, Run
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.events.rules import build_envelope, event_type
from workflows.events.services.outbox import relay_wake_up
from workflows.kinds.base import EventType, StepKind
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.locked import kind_of
from workflows.runs.services.people import task_asked
from workflows.runs.services.performers import perform


def outbox_rows(
    instance: WorkflowInstance, run: Run, event: WorkflowEvent, *, actor: Actor, at: datetime
) -> list[OutboxEvent]:
    """Outbox rows for requests and lifecycle events. A request's correlation id is its step, an event's is the run."""
    rows = []
    for effect in run.effects:
        if isinstance(effect, SendRequest):
            known = _kind_of(run, effect)
            row = outgoing(
                instance, effect.event_type, effect.payload, str(effect.step), event, at, known=known.request
            )
            row.call = known.call
            rows.append(row)
        elif isinstance(effect, Emit):
            payload = effect.payload
            if effect.event_type == "workflow.cancelled":
                payload = payload | {"cancelled_by": actor_reference(actor) or actor.kind.value}
            if effect.event_type == "workflow.halted":
                payload = payload | _said_about(event)
            rows.append(outgoing(instance, effect.event_type, payload, str(instance.id), event, at))
    if rows:
        relay_wake_up()
    return rows


def _said_about(event: WorkflowEvent) -> dict[str, str]:
    """The note of the person who halted the run. Its text stands in the outbox too, and is erased there with the
    run."""
    note = Note.objects.filter(id=event.envelope["note"]).first() if "note" in event.envelope else None
    return {"reason_note": note.text} if note is not None and note.text else {}


def outgoing(
    instance: WorkflowInstance,
    name: str,
    payload: dict[str, Any],
    correlation_id: str,
    cause: WorkflowEvent,
    at: datetime,
    *,
    known: EventType | None = None,
) -> OutboxEvent:
    """`known`: the type, if the catalogue does not have it because a step's params make it."""
    known, event_id, trace = known or event_type(name), uuid7(), current_trace()
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


def _kind_of(run: Run, effect: SendRequest) -> StepKind:
    step_id = next(step.step_id for step in run.state.steps if step.id == effect.step)
    return run.kind(step_id)


def call_keys_set(instance: WorkflowInstance, rows: Sequence[WorkflowStep], outbox: Sequence[OutboxEvent]) -> None:
    """The idempotency keys of calls over http, the same for every try: the attempt's id. A read has no attempt, so its
    key names the step. Called once the rows have their attempts."""
    calls = {row.envelope["correlation_id"]: row for row in outbox if row.call is not None}
    for step in rows:
        row = calls.get(str(step.id))
        if row is not None and row.call is not None:
            first = f"call:{step.scope}/{step.step_id}/{step.attempt - step.retries}"
            row.call = row.call | {"key": str(step.governed_attempt or uuid5(instance.id, first))}


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
            _review(instance, run, effect, by_id[effect.step], actor=actor, at=at)
        elif isinstance(effect, Perform):
            perform(effect.kind, instance, by_id[effect.step], effect.payload, at)
        elif isinstance(effect, EndReview):
            human_review_end(origin_step=effect.step, actor=actor, at=at, reason_code=effect.reason_code)
        elif isinstance(effect, Settle) and not _is_success(effect):
            _settle(effect, rows, by_id[effect.step], actor=actor, at=at)


def _review(
    instance: WorkflowInstance, run: Run, effect: OpenReview, step: WorkflowStep, *, actor: Actor, at: datetime
) -> None:
    if effect.shown is not None:
        human_task_open(asked=task_asked(instance, run, effect, step), actor=actor, at=at)
        return
    # The hash binds the review to the step, the definition and the context that the person decides about.
    shown = {"step": str(step.id), "definition": instance.definition_sha256, "context": instance.context}
    human_review_open(
        organization_id=instance.organization_id,
        origin_step=step.id,
        contract_id=instance.contract_id,
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
    wanted = (step.scope, step.step_id, step.attempt + 1)
    following = next((row for row in rows if (row.scope, row.step_id, row.attempt) == wanted), None)
    step_settle(
        attempt_id=step.governed_attempt,
        result=Result(effect.result),
        actor=actor,
        at=at,
        reason_code=effect.reason_code,
        due_at=following.next_eligible_at if following and effect.result == Result.RETRY else None,
    )


# Refusals that end without a person. Nothing was sent, so asking again repeats no effect.
PASSING = frozenset({"rate_limited", "concurrency_limit", "throttle_unavailable"})
VERDICTS = {"allow": "allow", "needs_approval": "hold", "deny": "deny"}


@dataclass(slots=True)
class StepGate:
    """The gate for one advance of one run. It keeps every answer, because the log stores them for replay."""

    instance: WorkflowInstance
    at: datetime
    region: str
    arrival: OwnArrival | None = None  # what intake would check about the contract, if it was read with the lock
    earlier: dict[tuple[str, str], UUID] = field(default_factory=dict)  # scope, step id: its last try's attempt
    attempts: dict[UUID, UUID] = field(default_factory=dict)  # step row: the attempt behind it
    answers: list[GateAnswered] = field(default_factory=list)
    pending: Pending = field(default_factory=Pending)  # what this advance writes, the attempts' rows among it
    opened: dict[UUID, New] = field(default_factory=dict)  # attempts that are still in there
    sent: int = 0

    @property
    def contract_id(self) -> UUID:
        if self.instance.contract_id is None:
            raise AttemptCreationDisabled
        return self.instance.contract_id

    def __call__(self, ask: AskGate, state: InstanceState) -> GateAnswered:
        if self.instance.contract_id is None:
            answer = self._answer(ask, "deny", "attempt_creation_disabled")
        elif not ask.governed:
            answer = self._plain(ask)
        elif ask.again and (ask.scope, ask.step_id) in self.earlier:
            answer = self._again(ask, self.earlier[ask.scope, ask.step_id])
        else:
            answer = self._open(ask, state)
        self.answers.append(answer)
        return answer

    def _plain(self, ask: AskGate) -> GateAnswered:
        """A read or a check: no attempt, but refused while the contract is closed or a shutdown covers it."""
        # The transaction took the send lock before it read the contract, so no shutdown can come between this and the
        # commit.
        try:
            intake_pass_ours(contract_id=self.contract_id, arrival=self.arrival)
        except AttemptCreationDisabled as refusal:
            return self._answer(ask, "deny", refusal.reason_code or "attempt_creation_disabled")
        return self._answer(ask, "allow")

    def _again(self, ask: AskGate, attempt_id: UUID) -> GateAnswered:
        """A retry of a request that was sent before: the same attempt, one more write."""
        self.attempts[ask.step] = attempt_id
        if self._has_written_enough():
            return self._answer(ask, "deny", "write_cap_reached")
        return self._dispatch(ask, attempt_id)

    def _has_written_enough(self) -> bool:
        return self.instance.writes + self.sent >= self.instance.organization.max_writes_per_run

    def _open(self, ask: AskGate, state: InstanceState) -> GateAnswered:
        if self._has_written_enough():
            return self._answer(ask, "deny", "write_cap_reached")
        opened = attempt_open(
            contract_id=self.contract_id,
            actor=SYSTEM,
            at=self.at,
            action={
                "operation": ask.operation or ask.event_type,
                "target_ref": ask.target or f"case/{self.instance.case_id}",
                "payload_ref": f"workflow-instance/{self.instance.id}",
                # Of a call: of what its module gets, so that the module can compare.
                "payload_sha256": canonical_sha256(ask.payload.get("send", ask.payload)),
                "risk_tier": self.instance.contract.risk_tier if self.instance.contract else "high",
                "fields": [],
            },
            metadata={"step_id": ask.step_id, "step_kind": ask.kind} | self._facts(ask),
            context_ref=_context_ref(self.instance),
            idempotency_key=str(ask.step),
            origin_step=ask.step,
            trace=trace_or_new(),
            deployment_region=self.region,
            pending=self.pending,
            keeps=not _ends_at_once(kind_of(self.instance, ask.step_id)),
            arrival=self.arrival,
        )
        if opened.attempt is not None:
            self.attempts[ask.step] = opened.attempt.id
        if opened.attempt is not None and opened.intent is not None:
            self.opened[opened.attempt.id] = (opened.attempt, opened.intent)
            self.sent += 1
            return self._answer(ask, "allow")
        if opened.verdict == "allow" and opened.attempt is not None:
            if opened.attempt.queued_until is not None:
                return self._answer(ask, "hold", "concurrency_limit")
            return self._dispatch(ask, opened.attempt.id)
        if opened.verdict == "deny" and opened.reason_code in PASSING:
            return self._answer(ask, "later", opened.reason_code, opened.retry_after or 0)
        return self._answer(ask, VERDICTS[opened.verdict], opened.reason_code)

    def _facts(self, ask: AskGate) -> dict[str, Any]:
        """What the contract declares of the request's content, for policies and for whoever releases it."""
        contract = self.arrival.facts.contract if self.arrival else self.instance.contract
        return facts_carried(facts_declared(contract.snapshot_sha256 or None), ask.payload) if contract else {}

    def _dispatch(self, ask: AskGate, attempt_id: UUID) -> GateAnswered:
        """Lease the attempt and write its intent, in the transaction that writes the outbox row."""
        self.attempts[ask.step] = attempt_id
        leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=self.at)
        if not leases.granted and not leases.refused:
            # The attempt's due time may still be ahead: a person wants the retry now, or another machine's clock set
            # it.
            leases = step_dispatch(attempt_id=attempt_id, actor=SYSTEM, at=self.at, hasten=True)
        if leases.granted:
            self.sent += 1
            return self._answer(ask, "allow")
        if not leases.refused:  # the attempt has ended without the engine: nobody knows whether it had its effect
            return self._answer(ask, "deny", "outcome_unknown")
        _, checked = leases.refused[0]
        if checked.go in {Go.REVIEW, Go.QUEUED}:
            return self._answer(ask, "hold", checked.reason_code)
        verdict = "later" if checked.go is Go.HOLD and checked.reason_code in PASSING else "deny"
        return self._answer(ask, verdict, checked.reason_code or "outcome_unknown")

    def _answer(self, ask: AskGate, verdict: str, reason_code: str = "", retry_after: int = 0) -> GateAnswered:
        return GateAnswered(self.at, ask.step, verdict, reason_code, retry_after)


def _context_ref(instance: WorkflowInstance) -> str:
    """The patient context of a step is its case; none where the contract's owner declared that there is none."""
    contract = instance.contract
    if contract is not None and contract.snapshot_sha256:
        envelope = snapshot_load(contract.snapshot_sha256)["documents"]["attempt_identity_envelope"]
        if envelope.get("patient_context") == PatientContext.NOT_APPLICABLE:
            return ""
    return f"case/{instance.case_id}"


def _ends_at_once(known: StepKind | None) -> bool:
    """No answer is awaited: the attempt is opened and completed in one transaction."""
    return known is not None and (known.completion is None or known.instant is not None)
