"""The services behind the executor API: lease by id or by connector, heartbeat, and reports with a lease token."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.execution.errors import NotLeasable
from attempts.execution.rules import report_findings
from attempts.execution.services.lease import Granted, attempt_lease, for_executor
from attempts.execution.services.outcome import (
    FailureReport,
    FencedReport,
    SuccessReport,
    attempt_complete,
    attempt_fail,
    attempt_heartbeat,
    lease_token_read,
)
from attempts.execution.services.recheck import Recheck
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.states import AttemptState, RuntimeMode
from attempts.quarantine.states import QuarantineCategory
from governance.boundary.errors import MetadataBoundary
from governance.contracts.states import AdapterName
from governance.sealing.selectors.witnesses import epoch_mark
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


@dataclass(frozen=True, slots=True)
class Presented:
    """A lease token that an executor presents for one attempt."""

    attempt_id: UUID
    token: str

    def report(self, actor: Actor) -> FencedReport:
        fence = lease_token_read(token=self.token, attempt_id=self.attempt_id, epoch=epoch_mark())
        return FencedReport(self.attempt_id, fence, executor_name(actor))


def executor_name(actor: Actor) -> str:
    return f"service:{actor.id}"


def executor_lease_many(*, actor: Actor, at: datetime, connector: str | None, limit: int) -> list[Granted]:
    """Leases attempts that are due, the oldest first. Empty if nothing is due."""
    selection = for_executor(actor=actor, connector=connector)
    return attempt_lease(actor=actor, at=at, owner=executor_name(actor), selection=selection, limit=limit).granted


def executor_lease(*, actor: Actor, at: datetime, attempt_id: UUID) -> Granted:
    """Leases this attempt, or raises NotLeasable with the reason."""
    selection = for_executor(actor=actor, attempt_id=attempt_id)
    leases = attempt_lease(actor=actor, at=at, owner=executor_name(actor), selection=selection)
    if leases.granted:
        return leases.granted[0]
    refused = leases.refused[0][1] if leases.refused else None
    raise _not_leasable(tenant_get(Attempt, attempt_id), refused)


def _not_leasable(attempt: Attempt, refused: Recheck | None) -> NotLeasable:
    if refused is not None:
        return NotLeasable(reason_code=refused.reason_code or None, headers={"Retry-After": "15"})
    if attempt.state != AttemptState.APPROVED:
        return NotLeasable(f"The attempt is {attempt.state}.", reason_code=attempt.reason_code or None)
    ours = attempt.runtime_mode == RuntimeMode.ACTIVE and attempt.connector != AdapterName.EXTERNAL
    if ours or attempt.runtime_mode == RuntimeMode.SHADOW:
        return NotLeasable(f"An attempt in mode {attempt.runtime_mode} is not executed through the API.")
    if attempt.lease_expires_at is not None:
        return NotLeasable("Somebody else has leased it.")
    waits = "It waits for a free slot." if attempt.queued_until is not None else "It is not due yet."
    return NotLeasable(waits, headers={"Retry-After": "5"})


def executor_heartbeat(*, actor: Actor, at: datetime, presented: Presented) -> Attempt:
    return attempt_heartbeat(actor=actor, at=at, report=presented.report(actor))


def executor_complete(*, actor: Actor, at: datetime, presented: Presented, result: SuccessReport) -> Attempt:
    _within_boundary(response_metadata=result.response_metadata, cost=result.cost, reversal_hint=result.reversal_hint)
    return attempt_complete(actor=actor, at=at, report=presented.report(actor), result=result)


def executor_fail(
    *, actor: Actor, at: datetime, presented: Presented, category: str, retryable: bool, reason_code: str
) -> Attempt:
    attempt = tenant_get(Attempt, presented.attempt_id)
    _category_in_use(attempt, category)
    reason_code_require(organization_id=attempt.organization_id, scope=Scope.QUARANTINE, code=reason_code)
    failure = FailureReport(QuarantineCategory(category), retryable=retryable, reason_code=reason_code)
    return attempt_fail(actor=actor, at=at, report=presented.report(actor), failure=failure)


def _category_in_use(attempt: Attempt, category: str) -> None:
    """Executors may report only categories that the contract's failure_quarantine document lists."""
    known = documents_of(attempt)["failure_quarantine"]["categories"]
    if category not in known:
        message = "one of: " + ", ".join(sorted(known))
        raise InvalidInput(errors=[FieldError("/category", message, rule="unknown_category")])


def _within_boundary(**report: Any) -> None:
    """Refuses a report with forbidden values. Nothing is stored and the lease stays, so it can be sent again."""
    findings = report_findings(**report)
    if findings:
        errors = [FieldError(one.pointer, one.message, rule=one.rule, remedy=one.remedy) for one in findings]
        raise MetadataBoundary(errors=errors)
