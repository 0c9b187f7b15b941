"""Reading the ledger."""

from uuid import UUID

from django.db.models import QuerySet

from governance.models import LedgerEntry
from governance.selectors.tenant import tenant_get


def ledger_entry_list(
    *, action: str | None = None, subject_id: UUID | None = None, reason_code: str | None = None
) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.order_by("-id")
    if action is not None:
        rows = rows.filter(action=action)
    if subject_id is not None:
        rows = rows.filter(subject_id=subject_id)
    if reason_code is not None:
        rows = rows.filter(reason_code=reason_code)
    return rows


def ledger_entry_get(*, entry_id: UUID) -> LedgerEntry:
    return tenant_get(LedgerEntry, entry_id)
