"""Executes an attempt in a worker: one commit for lease and intent, the adapter's call, one commit for the outcome."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import structlog

from attempts.execution.adapters.base import AdapterCall, Outcome, OutcomeKind, adapter_for, failure, unknown
from attempts.execution.configured import crash_point
from attempts.execution.errors import LeaseLost
from attempts.execution.rules import LEASE_SECONDS, outside_boundary
from attempts.execution.services.lease import Granted, attempt_lease, for_worker
from attempts.execution.services.outcome import (
    FailureReport,
    FencedReport,
    SuccessReport,
    attempt_complete,
    attempt_fail,
)
from attempts.lifecycle.hooks import step_ready
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_origin, documents_of
from attempts.quarantine.services.open import category_for
from attempts.quarantine.states import QuarantineCategory
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import lines_about, span

log = structlog.get_logger("holdpoint.dispatch")
# The outcome must be recorded before the lease ends: otherwise it is late evidence, and the attempt goes to quarantine
# as `outcome_unknown` although the call succeeded.
CALL_SECONDS = LEASE_SECONDS / 2


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of one attempt. `outcome` None: nothing was sent, because it is not due, or may not be sent now."""

    state: str | None = None
    outcome: Outcome | None = None


def attempt_dispatch(*, attempt_id: UUID, now: Callable[[], datetime]) -> str | None:
    """Executes the attempt if it is due and ours to execute. Returns its state, or None if there was nothing to do."""
    return attempt_execute(attempt_id=attempt_id, now=now).state


def attempt_execute(*, attempt_id: UUID, now: Callable[[], datetime]) -> Executed:
    """The same, with the outcome of the call."""
    crash_point("before_lease")
    with every_tenant(), lines_about(attempt_id=attempt_id):
        # Monotonic, and from before the lease: a clock that jumps must not make the call outlast the lease.
        began = time.monotonic()
        leases = attempt_lease(
            actor=SYSTEM, at=now(), owner=_worker_name(), selection=for_worker(attempt_id=attempt_id)
        )
        if not leases.granted:
            # An attempt of a workflow step is not leased here: its request goes through the outbox, which the engine
            # writes in its own transaction.
            if attempt_origin(attempt_id=attempt_id) is not None:
                step_ready(attempt_id, now())
            return Executed()
        # Outside any transaction: a slow receiver must not keep row locks, the send lock and a snapshot open.
        crash_point("after_intent")
        granted = leases.granted[0]
        outcome = _call(granted, seconds=CALL_SECONDS - (time.monotonic() - began))
        crash_point("after_answer")
        state = _record(granted, outcome, at=now())
        log.info("attempt_executed", adapter=granted.attempt.connector, outcome=outcome.kind.value, state=state)
        return Executed(state, outcome)


def _worker_name() -> str:
    return f"worker:{os.getpid()}@{socket.gethostname()}"[:64]


def _call(granted: Granted, *, seconds: float) -> Outcome:
    """Calls the adapter within `seconds`."""
    attempt = granted.attempt
    try:
        adapter = adapter_for(attempt.connector)
    except KeyError:
        return failure("adapter_missing")
    if seconds <= 0:  # this process was stopped for so long that its lease is nearly over; nothing was sent
        return failure("too_late", retryable=True)
    try:
        with span(f"adapter {adapter.name}", **{"holdpoint.adapter": adapter.name}):
            return adapter.call(_describe(granted, seconds))
    except Exception as error:
        # Any error that the adapter did not foresee may have come after it sent something, so the outcome is unknown.
        # As a failure it could be retried, and the side effect would happen twice.
        log.error("adapter_raised", adapter=attempt.connector, error=type(error).__name__)
        return unknown("adapter_raised")


def _describe(granted: Granted, seconds: float) -> AdapterCall:
    attempt = granted.attempt
    return AdapterCall(
        attempt_id=attempt.id,
        organization_id=attempt.organization_id,
        organization=attempt.organization.slug,
        workflow_slug=attempt.workflow_slug,
        contract_version=attempt.contract_version,
        operation=attempt.operation,
        target_ref=attempt.target_ref,
        payload_ref=attempt.payload_ref,
        payload_sha256=attempt.payload_sha256,
        fields=tuple(attempt.fields),
        effect_key=granted.intent.effect_key,
        metadata=attempt.metadata,
        seconds=seconds,
    )


def _record(granted: Granted, outcome: Outcome, *, at: datetime) -> str | None:
    attempt = granted.attempt
    report = FencedReport(attempt.id, attempt.lease_token, attempt.lease_owner)
    actor = replace(SYSTEM, organization_ids=frozenset({attempt.organization_id}))
    try:
        return str(_report(attempt, outcome, report, actor, at).state)
    except LeaseLost:
        # The report is kept as late evidence; the attempt is already someone else's, or in quarantine.
        log.warning("lease_lost", fence=attempt.lease_token)
        return None


def _report(attempt: Attempt, outcome: Outcome, report: FencedReport, actor: Actor, at: datetime) -> Attempt:
    metadata = outcome.response_metadata
    # The adapter's answer must not stop the outcome from being recorded, so forbidden values are dropped, not refused.
    if outside_boundary(metadata):
        metadata = {"withheld": True}
    if outcome.kind is OutcomeKind.SUCCESS:
        return attempt_complete(actor=actor, at=at, report=report, result=SuccessReport(metadata, cost=outcome.cost))
    category = QuarantineCategory.OUTCOME_UNKNOWN
    if outcome.kind is OutcomeKind.FAILURE:
        category = category_for(documents_of(attempt), "adapter_reported_failure")
    failed = FailureReport(category, retryable=outcome.retryable, response_metadata=metadata)
    return attempt_fail(actor=actor, at=at, report=report, failure=failed)
