"""Requests to modules over HTTP: made of outgoing events, begun, sent, and settled as a signal to the run.

The intent of a side effect was committed with its outgoing event. Beginning a call is committed before anything is
sent: a call that began and has no result may have reached the module, and is never sent again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef

from attempts.execution.adapters.base import Outcome, OutcomeKind, failure, signed_headers, success
from attempts.execution.adapters.http import HttpAnswer, HttpMessage, call_headers, http_exchange
from attempts.execution.configured import crash_point
from attempts.execution.services.dispatch import Executed
from attempts.intake.services.door import intake_pass_ours
from governance.enforcement.sql import send_lock_share
from governance.outside.wake_up import wake_up_once
from reasoncodes.base.actors import CLOCK, SYSTEM, Actor
from reasoncodes.base.errors import AttemptCreationDisabled
from workflows.events.models import OutboxEvent
from workflows.events.rules import event_type, payload_problems
from workflows.kinds.call_events import COMPLETED, call_event_name
from workflows.modules.configured import module_keys, module_private_hosts
from workflows.modules.models import Module, ModuleCall
from workflows.modules.rules.answers import (
    ACCEPTED,
    DRIFTED,
    UNKNOWN,
    CallResult,
    failed,
    result_of_answer,
    result_of_silence,
)
from workflows.modules.selectors import module_named, module_salts, module_terms
from workflows.modules.states import BODILESS, CallState
from workflows.runs.models import WorkflowStep
from workflows.runs.services.signal import signal_call_ended
from workflows.runs.states import StepStatus

log = structlog.get_logger("holdpoint.modules")
CALLS_TASK = "workflows.tasks.module_calls_work"
# An answer counts until the lease ends. The exchange itself ends well before, so that its result is written in time.
LEASE = timedelta(seconds=60)
CALL_SECONDS = 30.0
# Reads whose sender died are sent again so often.
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class BegunCall:
    """What sending needs: no rows, because it happens outside any transaction."""

    call_id: UUID
    tries: int
    effect: str
    message: HttpMessage
    keys: tuple[bytes, ...]
    seconds: float


def calls_make(rows: Sequence[OutboxEvent], at: datetime) -> None:
    """By the relay, in its transaction, for outgoing events that are sent over http."""
    made = []
    for row in rows:
        module = module_named(organization_id=row.organization_id, slug=row.call["module"]) if row.call else None
        if module is not None:
            made.append(_call(row, module, at))
    # The relay may bring an event twice; the call has its id.
    ModuleCall.objects.bulk_create(made, ignore_conflicts=True)
    if made:
        wake_up_once(CALLS_TASK)


def _call(row: OutboxEvent, module: Module, at: datetime) -> ModuleCall:
    return ModuleCall(
        id=row.id,
        organization_id=row.organization_id,
        module=module,
        step=UUID(row.envelope["correlation_id"]),
        terms=row.call,
        created_at=at,
    )


class _NotSent(Exception):
    """It must not be sent any more. The result says what the run is told; None: it does not wait any more."""

    def __init__(self, outcome: str, result: CallResult | None) -> None:
        super().__init__(outcome)
        self.outcome, self.result = outcome, result


def module_call_execute(*, attempt_id: UUID, now: Any) -> Executed:
    """Sends one call, if it is still to be sent. `attempt_id` is the call's id."""
    begun = call_begin(call_id=attempt_id, at=now())
    if begun is None:
        return Executed()
    crash_point("call_begun")
    outcome, result = call_send(begun)
    crash_point("call_sent")
    call_settle(call_id=begun.call_id, tries=begun.tries, result=result, outcome=_word(outcome), at=now())
    return Executed(state=result.word, outcome=outcome)


def call_begin(*, call_id: UUID, at: datetime) -> BegunCall | None:
    """Checks once more whether it may be sent, and marks it as begun. None: it is not to be sent."""
    with transaction.atomic():
        # Before what it protects is read: a shutdown that engages waits for this commit, or is seen here.
        send_lock_share()
        waiting = ModuleCall.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        call = waiting.select_related("module").filter(id=call_id, state=CallState.WAITING).first()
        if call is None:
            return None
        try:
            begun = _checked(call, at)
        except _NotSent as stop:
            _end(call, stop.outcome, stop.result, actor=SYSTEM, at=at)
            return None
        call.state, call.tries, call.lease_until = CallState.SENDING.value, call.tries + 1, at + LEASE
        call.save(update_fields=["state", "tries", "lease_until"])
        return begun


def _checked(call: ModuleCall, at: datetime) -> BegunCall:
    step = WorkflowStep.objects.select_related("instance").filter(id=call.step).first()
    sent = OutboxEvent.objects.filter(id=call.id).values_list("envelope", flat=True).first()
    if step is None or step.state != StepStatus.IN_PROGRESS or not sent:
        raise _NotSent("withdrawn", None)
    left = (step.timeout_at - at).total_seconds() if step.timeout_at else CALL_SECONDS
    if left <= 0:  # its timeout is being recorded, and nothing has been sent
        raise _NotSent("too_late", None)
    if not call.module.active:
        raise _NotSent("module_disabled", failed())
    url = module_terms(module=call.module).url or module_terms(module=call.module, number=call.terms["version"]).url
    try:
        if step.instance.contract_id is None:
            raise AttemptCreationDisabled
        intake_pass_ours(contract_id=step.instance.contract_id)
    except AttemptCreationDisabled as refusal:
        raise _NotSent("closed", failed(refusal.reason_code or "attempt_creation_disabled")) from refusal
    return BegunCall(
        call_id=call.id,
        tries=call.tries + 1,
        effect=call.terms["effect"],
        message=_message(url, call.terms, sent["payload"]["send"]),
        keys=tuple(module_keys(call.module_id, module_salts(module_id=call.module_id, at=at))),
        seconds=min(CALL_SECONDS, left),
    )


def _message(url: str, terms: Mapping[str, Any], send: Mapping[str, Any]) -> HttpMessage:
    address, method = url.rstrip("/") + terms["path"] if terms["path"] else url, terms["method"]
    # Answers are read as they come: a small compressed one could unpack to gigabytes.
    headers = call_headers(terms["key"]) | {"Accept-Encoding": "identity", "Accept": "application/json"}
    if method not in BODILESS:
        return HttpMessage(address, json.dumps(send, separators=(",", ":")).encode(), headers, method)
    query = urlencode({name: _plain(value) for name, value in send.items() if value is not None})
    return HttpMessage(f"{address}?{query}" if query else address, b"", headers, method)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def call_send(begun: BegunCall) -> tuple[Outcome, CallResult]:
    """The exchange, outside any transaction. `webhook-id` names the try, `Idempotency-Key` the effect."""
    heard: list[CallResult] = []

    def message() -> HttpMessage:
        made = begun.message
        signed = signed_headers(keys=begun.keys, message_id=str(begun.call_id), at=datetime.now(UTC), body=made.body)
        return HttpMessage(made.url, made.body, {**made.headers, **signed}, made.method)

    def judge(answer: HttpAnswer) -> Outcome:
        heard.append(result_of_answer(effect=begun.effect, status=answer.status, body=answer.body))
        good = 200 <= answer.status < 300
        return success(status=answer.status) if good else failure("refused", status=answer.status)

    outcome = http_exchange(message, private_hosts=module_private_hosts(), seconds=begun.seconds, judge=judge)
    if heard:
        return outcome, heard[0]
    sent, why = outcome.kind is OutcomeKind.UNKNOWN, str(outcome.response_metadata.get("failure", ""))
    return outcome, result_of_silence(effect=begun.effect, sent=sent, why=why)


def _word(outcome: Outcome) -> str:
    return "answered" if "status" in outcome.response_metadata else str(outcome.response_metadata["failure"])


def call_settle(*, call_id: UUID, tries: int, result: CallResult, outcome: str, at: datetime) -> bool:
    """False: it was settled meanwhile, because the lease had ended."""
    with transaction.atomic():
        rows = ModuleCall.objects.select_for_update(no_key=True).select_related(None)
        call = rows.filter(id=call_id, state=CallState.SENDING, tries=tries).first()
        if call is None:
            log.warning("call_result_late", call_id=str(call_id))
            return False
        _end(call, outcome, result, actor=SYSTEM, at=at)
    return True


def calls_expire(*, at: datetime, limit: int = 100) -> int:
    """Ends calls whose sender died. What may have had an effect is unknown, for a person to find out; a read is sent
    again, because our own failure is nobody else's."""
    with transaction.atomic():
        rows = ModuleCall.objects.select_for_update(no_key=True, skip_locked=True)
        due = list(rows.filter(state=CallState.SENDING, lease_until__lte=at).order_by("lease_until")[:limit])
        for call in due:
            if call.terms["effect"] == "none" and call.tries < MOST_TRIES:
                ModuleCall.objects.filter(id=call.id).update(state=CallState.WAITING, lease_until=None)
                wake_up_once(CALLS_TASK)
            else:
                silence = result_of_silence(effect=call.terms["effect"], sent=True, why="")
                _end(call, "sender_died", silence, actor=CLOCK, at=at)
        gone = _nobody_waits(at, limit)
        for call in gone:
            _end(call, "withdrawn", None, actor=CLOCK, at=at)
    return len(due) + len(gone)


def _nobody_waits(at: datetime, limit: int) -> list[ModuleCall]:
    """Calls that were never sent, because the module's circuit is open, and whose step is over."""
    waiting = WorkflowStep.objects.filter(id=OuterRef("step"), state=StepStatus.IN_PROGRESS)
    rows = ModuleCall.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    rows = rows.filter(~Exists(waiting), state=CallState.WAITING, created_at__lte=at - LEASE)
    return list(rows.order_by("id")[:limit])


def _end(call: ModuleCall, outcome: str, result: CallResult | None, *, actor: Actor, at: datetime) -> None:
    """The end of the call, and the signal to its run, in one transaction."""
    call.state, call.outcome, call.ended_at, call.lease_until = CallState.ENDED.value, outcome, at, None
    call.status = result.status if result else None
    call.save(update_fields=["state", "outcome", "status", "ended_at", "lease_until"])
    if result is None or result.word == ACCEPTED:
        return
    name, payload = _event(call, result)
    signal_call_ended(
        organization_id=call.organization_id,
        step=call.step,
        event_type=name,
        payload=payload,
        unknown=result.word == UNKNOWN,
        actor=actor,
        at=at,
    )


def _event(call: ModuleCall, result: CallResult) -> tuple[str, dict[str, Any] | None]:
    """The event that the module would have sent. What does not pass its schema or the metadata boundary is not kept."""
    word = COMPLETED if result.word in {DRIFTED, UNKNOWN} else result.word
    name = call_event_name(call.terms["module"], call.terms["operation"], word)
    known = event_type(name)
    if known is None or result.payload is None or payload_problems(known, result.payload):
        return name, None
    return name, result.payload
