"""Reads quarantine cases."""

from uuid import UUID

from django.db.models import QuerySet

from attempts.quarantine.models import QuarantineCase
from governance.tenancy.selectors import tenant_get


def quarantine_case_list(*, category: str | None = None, resolved: bool | None = None) -> QuerySet[QuarantineCase]:
    rows = QuarantineCase.objects.select_related("attempt").order_by("-id")
    if category is not None:
        rows = rows.filter(category=category)
    if resolved is not None:
        rows = rows.exclude(resolution="") if resolved else rows.filter(resolution="")
    return rows


def cases_shown(*, rows: QuerySet[QuarantineCase], which: str) -> QuerySet[QuarantineCase]:
    """Resolved cases if `which` is "resolved", else those that wait for a person."""
    return rows.exclude(resolution="") if which == "resolved" else rows.filter(resolution="")


def quarantine_case_get(*, case_id: UUID) -> QuarantineCase:
    return tenant_get(QuarantineCase, case_id)


def quarantine_finding(*, attempt_id: UUID) -> str | None:
    """The investigated outcome; empty while there is none, None if the attempt was never in quarantine."""
    return QuarantineCase.objects.filter(attempt_id=attempt_id).values_list("finding", flat=True).first()
