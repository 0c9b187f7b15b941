"""The worker's way: lease and intent in one commit, the call outside any transaction, its outcome in the second."""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog

from attempts.execution.adapters.base import AdapterCall, Outcome, OutcomeKind, failure, unknown
from attempts.execution.adapters.registry import adapter_for
from attempts.execution.configured import crash_point
from attempts.execution.errors import LeaseLost
from attempts.execution.rules.response import outside_boundary
from attempts.execution.services.lease import LEASE_SECONDS, Granted, attempt_lease, for_worker
from attempts.execution.services.lease_check import FencedReport
from attempts.execution.services.outcome import FailureReport, SuccessReport, attempt_complete, attempt_fail
from attempts.lifecycle.hooks import step_ready
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_origin, documents_of
from attempts.quarantine.services.open import category_for
from attempts.quarantine.states import QuarantineCategory
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import span

log = structlog.get_logger("holdpoint.dispatch")
CALL_SECONDS = LEASE_SECONDS / 2  # the outcome must be on record before the lease ends


def attempt_dispatch(*, attempt_id: UUID, now: Callable[[], datetime]) -> str | None:
    """Executes the attempt if it is due and ours; its state afterwards, or nothing when there was nothing to do."""
    crash_point("before_lease")
    with every_tenant():
        began = time.monotonic()
        leases = attempt_lease(
            actor=SYSTEM, at=now(), owner=_worker_name(), selection=for_worker(attempt_id=attempt_id)
        )
        if not leases.granted:
            if attempt_origin(attempt_id=attempt_id) is not None:
                step_ready(attempt_id, now())
            return None
        crash_point("after_intent")
        granted = leases.granted[0]
        outcome = _call(granted, seconds=CALL_SECONDS - (time.monotonic() - began))
        crash_point("after_answer")
        return _record(granted, outcome, at=now())


def _worker_name() -> str:
    return f"worker:{os.getpid()}@{socket.gethostname()}"[:64]


def _call(granted: Granted, *, seconds: float) -> Outcome:
    """Anything that an adapter did not foresee is an unknown outcome, not a failure."""
    attempt = granted.attempt
    try:
        adapter = adapter_for(attempt.connector)
    except KeyError:
        return failure("adapter_missing")
    if seconds <= 0:  # this process was stopped for so long that its lease is as good as gone; nothing was sent
        return failure("too_late", retryable=True)
    try:
        with span(f"adapter {adapter.name}", **{"holdpoint.adapter": adapter.name}):
            return adapter.call(_describe(granted, seconds))
    except Exception as error:
        log.error("adapter_raised", adapter=attempt.connector, attempt_id=str(attempt.id), error=type(error).__name__)
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
        log.warning("lease_lost", attempt_id=str(attempt.id), fence=attempt.lease_token)
        return None


def _report(attempt: Attempt, outcome: Outcome, report: FencedReport, actor: Actor, at: datetime) -> Attempt:
    metadata = outcome.response_metadata
    if outside_boundary(metadata):
        metadata = {"withheld": True}
    if outcome.kind is OutcomeKind.SUCCESS:
        return attempt_complete(actor=actor, at=at, report=report, result=SuccessReport(metadata, cost=outcome.cost))
    category = QuarantineCategory.OUTCOME_UNKNOWN
    if outcome.kind is OutcomeKind.FAILURE:
        category = category_for(documents_of(attempt), "adapter_reported_failure")
    failed = FailureReport(category, retryable=outcome.retryable, response_metadata=metadata)
    return attempt_fail(actor=actor, at=at, report=report, failure=failed)
