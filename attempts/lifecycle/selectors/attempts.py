"""Reads attempts: lists and filters, one attempt with its rows and timeline, the row lock, search by id, trace, key."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from attempts.execution.models import Receipt
from attempts.execution.states import ReceiptOutcome
from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import AttemptState, PatientContext
from attempts.reviews.models import Review
from governance.console.selectors.lists import ids_in_scope, newest, uuid_or_none
from governance.contracts.rules.documents import ENVELOPE_FIELDS
from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.enforcement.selectors import decision_get
from governance.ledger.models import LedgerEntry
from governance.tenancy.selectors import tenant_get


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
    rows = Attempt.objects.filter(**{name: value for name, value in exact.items() if value is not None})
    # With the contract, because each attempt shows whether its owner declared a patient context not applicable.
    return rows.select_related("contract").order_by("-id")


WAITS = {"executor": "its executor", "lease": "the end of a lease", "place": "a free slot"}


def attempts_waiting(*, rows: QuerySet[Attempt], what: str) -> QuerySet[Attempt]:
    """Attempts that wait for this. Any other word does not filter."""
    # Each condition repeats that of a partial index: otherwise PostgreSQL could not use it.
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
    """These attempts, as far as they are in scope, oldest first."""
    return list(Attempt.objects.filter(id__in=ids).select_related("organization").order_by("id"))


def attempt_get(*, attempt_id: UUID) -> Attempt:
    return tenant_get(Attempt, attempt_id)


def attempt_lock(*, attempt_id: UUID) -> Attempt:
    """Locks the attempt (FOR NO KEY UPDATE)."""
    # The lock order is instance, attempt, review, ledger. Whoever locks a review first can deadlock with a vote.
    return tenant_get(Attempt, attempt_id, lock=True)


def attempt_review(*, attempt: Attempt) -> Review | None:
    """Its newest hold. An attempt can be held again before an act."""
    return Review.objects.filter(attempt=attempt).order_by("-id").first()


def attempt_receipts(*, attempt: Attempt) -> QuerySet[Receipt]:
    rows = Receipt.objects.filter(attempt=attempt).select_related("attempt__contract", "intent__attempt")
    return rows.order_by("id")


def attempt_identity(*, attempt: Attempt) -> dict[str, Any]:
    """The ten identity fields. Where the boundary withheld one from the decision, it is null."""
    envelope = (attempt_decision(attempt=attempt).request or {}).get("envelope", {})
    return {name: envelope.get(name) for name in ENVELOPE_FIELDS}


def patient_context_said(*, attempt: Attempt) -> PatientContext:
    """Whether the attempt names a patient context; `not_applicable`: the contract's owner declared that there is
    none."""
    if attempt.patient_context_ref:
        return PatientContext.GIVEN
    envelope = documents_of(attempt)["attempt_identity_envelope"] if attempt.contract.snapshot_sha256 else {}
    declared = envelope.get("patient_context") == PatientContext.NOT_APPLICABLE
    return PatientContext.NOT_APPLICABLE if declared else PatientContext.ABSENT


def attempt_decision(*, attempt: Attempt) -> EnforcementDecision:
    return decision_get(decision_id=attempt.decision_id)


def attempt_timeline(*, attempt: Attempt) -> list[LedgerEntry]:
    """Ledger entries about the attempt, its decision and its reviews, oldest first."""
    reviews = Review.objects.filter(attempt=attempt).values_list("id", flat=True)
    subjects = [attempt.id, attempt.decision_id, *reviews]
    # A caller that repeats its key adds an entry each time; the page must not grow with it.
    return list(LedgerEntry.objects.filter(subject_id__in=subjects).order_by("id")[:500])


def attempt_origin(*, attempt_id: UUID) -> UUID | None:
    """The workflow step that opened it."""
    return Attempt.objects.filter(id=attempt_id).values_list("origin_step", flat=True).first()


FOUND = 20
# The index of the records begins with organization and scope. A search by key alone would read the whole table, so the
# statement asks for the key in every scope that it can have.
BY_KEY = """
SELECT record.id FROM (
    SELECT id AS organization_id, 'tenant' AS scope FROM governance_organization
    UNION SELECT organization_id, 'contract:' || slug FROM governance_contract
    UNION SELECT organization_id, 'caller:' || id FROM governance_serviceaccount
) AS place
JOIN attempts_idempotencyrecord record USING (organization_id, scope)
WHERE place.organization_id = ANY(%s) AND record.key = %s LIMIT %s
"""
TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$")


def _trace_of(term: str) -> str:
    """The trace id, also from a whole `traceparent`."""
    found = TRACEPARENT.match(term.strip().lower())
    return found[1] if found else term.strip()


def attempts_by_trace(*, trace: str) -> list[Attempt]:
    rows = Attempt.objects.filter(request_trace_id=_trace_of(trace)).select_related("organization")
    return list(rows.order_by("-id")[:FOUND])


def _records_by_key(*, key: str) -> list[IdempotencyRecord]:
    """The records of a key in the current scope, newest first. `body` and `parts` are not read."""
    # The statement is not built by the tenant manager, so the organizations are passed by hand.
    with connection.cursor() as cursor:
        cursor.execute(BY_KEY, [list(ids_in_scope()), key, FOUND])
        ids = [id_ for (id_,) in cursor.fetchall()]
    rows = IdempotencyRecord.objects.filter(id__in=ids).defer("body", "parts").select_related("organization")
    return sorted(rows, key=lambda row: row.id, reverse=True)


def attempts_by_key(*, key: str) -> list[Attempt]:
    """Attempts with this key: by its records, and among the newest attempts."""
    # Contracts in mode `timeline` write no record, and attempts have no index of keys: every intake would pay for it.
    found = {row.attempt_id for row in _records_by_key(key=key)}
    ids = newest(Attempt.objects.all()).filter(idempotency_key=key).values_list("id", flat=True)[:FOUND]
    rows = Attempt.objects.filter(id__in=found | set(ids)).select_related("organization")
    return list(rows.order_by("-id")[:FOUND])


def attempt_matches(term: str) -> Q:
    """The search of the list of attempts: by id, trace or key."""
    ids = [attempt.id for attempt in attempts_by_key(key=term)]
    own = uuid_or_none(term)
    return Q(id__in=[*ids, *([own] if own else [])]) | Q(request_trace_id=_trace_of(term))


def record_matches(term: str) -> Q:
    """The search of the list of keys: by key, or by the id of its attempt."""
    own = uuid_or_none(term)
    attempt = Attempt.objects.filter(id=own).first() if own else None
    found = {row.id for row in _records_by_key(key=term)}
    if attempt is not None and attempt.idempotency_key:
        guarded = _records_by_key(key=attempt.idempotency_key)
        found |= {row.id for row in guarded if row.attempt_id == attempt.id}
    return Q(id__in=found)


def documents_of(attempt: Attempt) -> dict[str, Any]:
    """The ten documents of the contract version under which the attempt was admitted."""
    documents: dict[str, Any] = snapshot_load(attempt.contract.snapshot_sha256)["documents"]
    return documents


def compensation_of(attempt: Attempt) -> str:
    """The contract with which a person may compensate it, as slug/version; empty if none is declared."""
    return str(documents_of(attempt)["failure_quarantine"].get("compensation_contract") or "")


def reversibility(*, effect: str, compensation: str, reversible: bool = False, hint: str = "") -> str:
    """Whether an action can be undone, in words. `compensation`: the contract that undoes it, as slug/version.
    `reversible` and `hint`: what its receipt says."""
    if reversible:
        return f"The executor says that it can be undone{f': {hint}' if hint else ''}."
    if effect == "none":
        return "Nothing is changed, so there is nothing to undo."
    if compensation:
        return f"Not automatically. A person can compensate it with a new request under {compensation}."
    return "The contract names no compensation, so treat the action as final."


def receipt_reversal(*, receipt: Receipt) -> str:
    """How what this receipt reports can be undone, in words."""
    if receipt.outcome != ReceiptOutcome.SUCCESS:
        return "It reports a failure, so there is nothing to undo."
    attempt = receipt.attempt
    return reversibility(
        effect=attempt.effect,
        compensation=compensation_of(attempt),
        reversible=receipt.reversible,
        hint=receipt.reversal_hint,
    )
