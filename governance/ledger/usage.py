"""How often the record names a reason code, counted only so far that a page never costs more as the record grows."""

from uuid import UUID

from governance.models import LedgerEntry


def reason_code_usage_count(*, organization_id: UUID | None, codes: list[str], limit: int) -> dict[str, int]:
    rows = LedgerEntry.objects.all()
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    return {code: rows.filter(reason_code=code).order_by()[:limit].count() for code in codes}
