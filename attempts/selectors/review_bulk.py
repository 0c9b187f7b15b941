"""Which reviews may be answered together, and why not."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from attempts.models import Review
from attempts.states import ReviewKind

MOST = 100
LOW = "low"


def bulk_rows(*, review_ids: Iterable[UUID]) -> list[Review]:
    """In the order of their deadlines; those of other organizations do not exist."""
    wanted = list(dict.fromkeys(review_ids))[: MOST + 1]
    rows = Review.objects.filter(id__in=wanted).select_related("attempt__caller", "claimed_by")
    return list(rows.order_by("expires_at", "id"))


def bulk_widths(*, rows: Sequence[Review]) -> list[str]:
    """What makes the set too wide, as sentences; empty when it may be answered together."""
    attempts = [row.attempt for row in rows if row.attempt is not None]
    contracts = {(attempt.workflow_slug, attempt.contract_version) for attempt in attempts}
    found = []
    if not rows:
        found.append("Nothing is chosen.")
    if len(rows) > MOST:
        found.append(f"More than {MOST} are chosen.")
    if any(row.kind != ReviewKind.RELEASE for row in rows):
        found.append("Cases are judged one by one.")
    if len(contracts) > 1:
        found.append("They belong to several contracts.")
    if any(attempt.risk_tier != LOW for attempt in attempts):
        found.append("Not all of them are of the low risk tier.")
    return found
