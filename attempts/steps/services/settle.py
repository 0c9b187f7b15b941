"""Dispatches and settles the attempt of a workflow step, in the engine's transaction. Opening it is in `open`.

The request is a row in the outbox, which commits together with the intent. The answer is an event of the module.
"""

# Such an attempt has a lease without an end, because nobody reports under it: the timeout of the step ends it. No
# handlers are called (`tell=False`): the engine would get a signal about its own change.

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.lease import Leases, Selection, attempt_lease
from attempts.execution.services.outcome import retry_schedule
from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.transition import transition_apply, transition_join
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.services.open import category_for, quarantine_open
from attempts.quarantine.states import QuarantineCategory
from attempts.reviews.services.decide import review_cancel
from attempts.steps.services.open import OWNER
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import fetch, new_row, stored_row
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import in_scope

# Only the columns that a state change reads and writes.
COLUMNS = (
    *("id", "organization_id", "state", "reason_code", "runtime_mode", "connector", "origin_step", "lease_token"),
    *("lease_expires_at", "next_eligible_at", "queued_until", "ended_at"),
)
# One statement instead of two (row, then intent). FOR NO KEY UPDATE: nobody else can change the state meanwhile, but
# inserts of rows with a foreign key to the attempt need not wait.
HELD = f"""
SELECT (SELECT i.id FROM attempts_dispatchintent i WHERE i.attempt_id = a.id AND i.fence = a.lease_token LIMIT 1),
    {", ".join(f"a.{name}" for name in COLUMNS)}
FROM attempts_attempt a WHERE a.id = $1 FOR NO KEY UPDATE OF a
"""  # noqa: S608
New = tuple[Attempt, DispatchIntent]


class Result(StrEnum):
    """How a try ended that did not succeed. A success is recorded by `step_succeed`."""

    FAILED = "failed"
    RETRY = "retry"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"


def step_dispatch(*, attempt_id: UUID, actor: Actor, at: datetime, hasten: bool = False) -> Leases:
    """Leases the attempt and writes its intent, under the send lock and after the re-checks. If it is granted, the
    caller writes the outbox row. `hasten`: send it although it is not due yet."""
    # A person wants the retry now, or the clock that set the time runs ahead of the database's clock.
    if hasten:
        waiting = Attempt.objects.filter(id=attempt_id, state=AttemptState.APPROVED, next_eligible_at__gt=Now())
        waiting.update(next_eligible_at=Now())
    chosen = Selection("origin_step IS NOT NULL").only("id = %(attempt)s", attempt=attempt_id)
    return attempt_lease(actor=actor, at=at, owner=OWNER, selection=chosen, seconds=None, tell=False)


def step_settle(
    *,
    attempt_id: UUID,
    result: Result,
    actor: Actor,
    at: datetime,
    reason_code: str = "",
    due_at: datetime | None = None,
) -> Attempt:
    """Ends the attempt, or schedules its next try. An attempt that has already ended is not changed."""
    attempt = tenant_get(Attempt, attempt_id, lock=True)
    if attempt.state not in {AttemptState.APPROVED, AttemptState.REVIEW_REQUIRED}:
        return attempt
    if result is Result.WITHDRAWN and attempt.lease_token == 0:
        review_cancel(attempt=attempt, actor=actor, at=at, reason_code="cancelled_by_caller")
        transition_apply(attempt, "deny", actor=actor, at=at, tell=False, reason_code="cancelled_by_caller")
    elif result is Result.UNKNOWN:
        _set_apart(attempt, QuarantineCategory.OUTCOME_UNKNOWN, "outcome_unknown", actor=actor, at=at)
    elif result is Result.WITHDRAWN:  # between two tries: the last one failed, and there will be no other
        _set_apart(attempt, _category(attempt), "adapter_failed", actor=actor, at=at)
    else:
        _failed(attempt, result, reason_code, due_at, actor=actor, at=at)
    return attempt


def step_succeed(*, attempt_id: UUID, pending: Pending, new: New | None, actor: Actor, at: datetime) -> None:
    """Completes the attempt with rows in `pending`. `new`: attempt and intent, if they are pending too and not stored.
    An attempt that has already ended is not changed."""
    attempt, intent_id = (new[0], new[1].id) if new else _held(attempt_id)
    if attempt.state not in {AttemptState.APPROVED, AttemptState.REVIEW_REQUIRED}:
        return
    receipt = new_row(
        Receipt,
        id=uuid7(),
        attempt_id=attempt.id,
        intent_id=intent_id,
        outcome=ReceiptOutcome.SUCCESS,
        response_metadata={},
        at=at,
    )
    pending.add(receipt)
    payload = {"receipt": str(receipt.id), "fence": attempt.lease_token}
    transition_join(attempt, "complete", pending, actor=actor, at=at, payload=payload)


def _held(attempt_id: UUID) -> tuple[Attempt, UUID | None]:
    """Locks the attempt and reads the intent of its last try."""
    # The statement is not built by the tenant manager, so the scope is checked by hand.
    rows = fetch(HELD, (attempt_id,))
    attempt = stored_row(Attempt, COLUMNS, rows[0][1:]) if rows else None
    if attempt is None or not in_scope(attempt.organization_id):
        raise NotFound
    return attempt, rows[0][0]


def _failed(
    attempt: Attempt, result: Result, reason_code: str, due_at: datetime | None, *, actor: Actor, at: datetime
) -> None:
    receipt = Receipt(
        attempt=attempt,
        intent=DispatchIntent.objects.filter(attempt_id=attempt.id, fence=attempt.lease_token).first(),
        outcome=ReceiptOutcome.FAILURE,
        category=_category(attempt, reason_code),
        retryable=result is Result.RETRY,
        reason_code=reason_code or "adapter_failed",
        response_metadata={},
        at=at,
    )
    insert_together([receipt])
    payload = {"receipt": str(receipt.id), "fence": attempt.lease_token}
    if due_at is not None:
        retry_schedule(attempt, due_at=due_at, actor=actor, at=at, payload=payload, reason_code=receipt.reason_code)
    else:
        _set_apart(attempt, QuarantineCategory(receipt.category), "adapter_failed", actor=actor, at=at, **payload)


# The step's reason code when an answer does not have the declared shape.
REJECTED = "output_contract_drift"


def _category(attempt: Attempt, reason_code: str = "") -> QuarantineCategory:
    rejected = reason_code == REJECTED
    return category_for(documents_of(attempt), "response_rejected" if rejected else "adapter_reported_failure")


def _set_apart(
    attempt: Attempt, category: QuarantineCategory, reason_code: str, *, actor: Actor, at: datetime, **payload: Any
) -> None:
    quarantine_open(
        attempt,
        actor=actor,
        at=at,
        category=category,
        reason_code=reason_code,
        payload={"fence": attempt.lease_token, **payload},
        tell=False,
    )
