"""Reads the ledger."""

from uuid import UUID

from django.db.models import Q, QuerySet

from governance.ledger.models import LedgerEntry
from governance.ledger.rules.entry import may_join
from governance.tenancy.selectors import tenant_get


def tells(action: str) -> Q:
    """Entries with this action among their moves."""
    own = Q(action=action)
    return own | Q(earlier__has_key=action) if may_join(action) else own


def ledger_entry_list(
    *, action: str | None = None, subject_id: UUID | None = None, reason_code: str | None = None
) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.order_by("-id")
    if action is not None:
        rows = rows.filter(tells(action))
    if subject_id is not None:
        rows = rows.filter(subject_id=subject_id)
    if reason_code is not None:
        rows = rows.filter(reason_code=reason_code)
    return rows


def ledger_entry_get(*, entry_id: UUID) -> LedgerEntry:
    return tenant_get(LedgerEntry, entry_id)


def reason_code_usage_count(*, organization_id: UUID | None, codes: list[str], limit: int) -> dict[str, int]:
    """How often each code is in the ledger, counted up to `limit`."""
    rows = LedgerEntry.objects.all()
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    # With a limit: counting all entries of a frequent code would read a large part of the ledger for one page.
    return {code: rows.filter(reason_code=code).order_by()[:limit].count() for code in codes}


def was_deactivated_in(*, user_id: UUID, organization_id: UUID) -> bool:
    """Whether this organization's record says that the person's access ended here."""
    rows = LedgerEntry.objects.filter(organization_id=organization_id, subject_id=user_id, action="person.deactivated")
    return rows.exists()
