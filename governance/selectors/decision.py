"""Reading decisions, and the snapshots that they were computed from."""

from collections.abc import Iterator
from uuid import UUID

from django.db.models import QuerySet

from governance.models import EnforcementDecision
from governance.models.decision import SnapshotBroken, snapshot_load
from governance.selectors.tenant import tenant_get

__all__ = [
    "SnapshotBroken",
    "decision_get",
    "decision_list",
    "decisions_newest_first",
    "snapshot_load",
]


def decision_get(*, decision_id: UUID) -> EnforcementDecision:
    return tenant_get(EnforcementDecision, decision_id)


def decision_list(*, verdict: str | None = None, contract_id: UUID | None = None) -> QuerySet[EnforcementDecision]:
    rows = EnforcementDecision.objects.order_by("-id")
    if verdict is not None:
        rows = rows.filter(verdict=verdict)
    if contract_id is not None:
        rows = rows.filter(contract_id=contract_id)
    return rows


def decisions_newest_first(
    *, limit: int | None = None, policy_slug: str | None = None, organization_id: UUID | None = None
) -> Iterator[EnforcementDecision]:
    """In bounded memory, however many there are: pages by key, so that no cursor is held open."""
    rows = EnforcementDecision.objects.order_by("-id")
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    if policy_slug is not None:
        rows = rows.filter(contract__policy_slug=policy_slug)
    last, left = None, limit
    while left is None or left > 0:
        size = 500 if left is None else min(500, left)
        page = list((rows.filter(id__lt=last) if last else rows)[:size])
        yield from page
        if len(page) < size:
            return
        last, left = page[-1].id, None if left is None else left - len(page)
