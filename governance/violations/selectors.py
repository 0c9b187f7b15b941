"""Reads violations."""

from django.db.models import QuerySet

from governance.violations.models import GovernanceViolation


def violation_list(*, kind: str | None = None) -> QuerySet[GovernanceViolation]:
    rows = GovernanceViolation.objects.order_by("-id")
    return rows.filter(kind=kind) if kind is not None else rows
