"""Reading keys: what became of each, and how often it came again."""

from uuid import UUID

from django.db.models import QuerySet

from attempts.intake.models import IdempotencyRecord
from governance.ledger.models import LedgerEntry
from governance.tenancy.selectors import tenant_get

COUNT_LIMIT = 1000
ACTIONS = {
    "replays": "attempt.replayed",
    "conflicts": "attempt.conflicted",
    "after_expiry": "attempt.key_expired",
}


def idempotency_record_list(*, key: str | None = None) -> QuerySet[IdempotencyRecord]:
    rows = IdempotencyRecord.objects.order_by("-id")
    return rows.filter(key=key) if key is not None else rows


def idempotency_record_get(*, record_id: UUID) -> IdempotencyRecord:
    return tenant_get(IdempotencyRecord, record_id)


def key_uses(*, record: IdempotencyRecord) -> dict[str, int]:
    """From the ledger, counted up to a thousand: a page must not cost more because a caller hammers its key."""
    entries = LedgerEntry.objects.filter(subject_id=record.attempt_id).order_by()
    return {name: entries.filter(action=action)[:COUNT_LIMIT].count() for name, action in ACTIONS.items()}
