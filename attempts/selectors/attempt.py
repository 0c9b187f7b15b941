"""Reading attempts: lists, the timeline, what belongs to one."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.models import Attempt, Receipt, Review
from attempts.states import AttemptState
from governance.models import EnforcementDecision, LedgerEntry
from governance.selectors import decision_get, tenant_get


def attempt_list(
    *,
    state: str | None = None,
    workflow_slug: str | None = None,
    contract_version: int | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    idempotency_key: str | None = None,
) -> QuerySet[Attempt]:
    exact = {
        "state": state,
        "workflow_slug": workflow_slug,
        "contract_version": contract_version,
        "created_at__gt": created_after,
        "created_at__lt": created_before,
        "idempotency_key": idempotency_key,
    }
    return Attempt.objects.order_by("-id").filter(**{name: value for name, value in exact.items() if value is not None})


WAITS = {"executor": "its executor", "lease": "the end of a lease", "place": "a free slot"}


def attempts_waiting(*, rows: QuerySet[Attempt], what: str) -> QuerySet[Attempt]:
    """Those that wait for this; any other word leaves the rows as they are."""
    released = Q(state=AttemptState.APPROVED)
    match what:
        case "executor":
            return rows.filter(released, next_eligible_at__isnull=False)
        case "lease":
            return rows.filter(released, lease_expires_at__isnull=False)
        case "place":
            return rows.filter(queued_until__isnull=False)
    return rows


def attempts_chosen(*, ids: Sequence[UUID]) -> list[Attempt]:
    """Those in scope, oldest first."""
    return list(Attempt.objects.filter(id__in=ids).select_related("organization").order_by("id"))


def attempt_get(*, attempt_id: UUID) -> Attempt:
    return tenant_get(Attempt, attempt_id)


def attempt_lock(*, attempt_id: UUID) -> Attempt:
    """First in the lock order: attempt, review, ledger."""
    return tenant_get(Attempt, attempt_id, lock=True)


def attempt_review(*, attempt: Attempt) -> Review | None:
    return Review.objects.filter(attempt=attempt).first()


def attempt_receipts(*, attempt: Attempt) -> QuerySet[Receipt]:
    return Receipt.objects.filter(attempt=attempt).order_by("id")


def attempt_decision(*, attempt: Attempt) -> EnforcementDecision:
    return decision_get(decision_id=attempt.decision_id)


def attempt_timeline(*, attempt: Attempt) -> list[LedgerEntry]:
    """Everything the record says about it, oldest first: its own entries and those of its decision and review."""
    review = attempt_review(attempt=attempt)
    subjects = [attempt.id, attempt.decision_id, *([review.id] if review else [])]
    return list(LedgerEntry.objects.filter(subject_id__in=subjects).order_by("id")[:500])


def origin_of(*, attempt_id: UUID) -> UUID | None:
    """The workflow step that opened it."""
    return Attempt.objects.filter(id=attempt_id).values_list("origin_step", flat=True).first()
