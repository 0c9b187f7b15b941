"""Reads decisions: one, a list, all of them in bounded memory, and their numbers per hour for the overview."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet, Sum
from django.db.models.functions import TruncHour

from governance.console.models import IntakeMinute
from governance.console.selectors.lists import by_organization
from governance.console.selectors.pages import COUNT_LIMIT, id_floor, id_moment
from governance.enforcement.models import EnforcementDecision
from governance.tenancy.selectors import tenant_get


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
    """All decisions, in bounded memory."""
    # Pages by id: no cursor stays open while the caller works. With offsets, decisions that arrive meanwhile would
    # shift the pages and rows would come twice.
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


VERDICTS = ("allow", "needs_approval", "deny")
HOURS = 24


@dataclass(frozen=True, slots=True)
class IntakeHours:
    """`hours` are (beginning, {verdict: number of decisions}), oldest first. `capped`: more decisions than
    COUNT_LIMIT are not yet in the minute rows, so the newest hours are too low."""

    hours: list[tuple[datetime, dict[str, int]]]
    capped: bool

    @property
    def totals(self) -> dict[str, int]:
        return {verdict: sum(counts[verdict] for _, counts in self.hours) for verdict in VERDICTS}


def intake_by_verdict(*, at: datetime, hours: int = HOURS) -> IntakeHours:
    """Adds up the counted minutes, and counts the decisions after the last counted minute directly."""
    this_hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = this_hour - timedelta(hours=hours - 1)
    found: Counter[tuple[datetime, str]] = Counter()
    minutes = IntakeMinute.objects.filter(minute__gte=first).order_by()
    for hour, verdict, decisions in minutes.values_list(TruncHour("minute"), "verdict").annotate(sum=Sum("decisions")):
        found[hour, verdict] += decisions
    # The newest minute of any organization: the scheduled task counts all of them together, and an organization
    # without decisions has no row. With its own newest row it would read a long tail that is counted as zero.
    newest = IntakeMinute._base_manager.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + timedelta(minutes=1), first) if newest else first
    rows = EnforcementDecision.objects.filter(by_organization(), id__gte=id_floor(since)).order_by("-id")
    # Limited, because a scheduled task that stopped must not make the overview read a day of decisions.
    tail = list(rows.values_list("id", "verdict")[:COUNT_LIMIT])
    found.update((id_moment(id_).replace(minute=0, second=0, microsecond=0), verdict) for id_, verdict in tail)
    shown = [first + timedelta(hours=number) for number in range(hours)]
    return IntakeHours(
        [(hour, {verdict: found[hour, verdict] for verdict in VERDICTS}) for hour in shown],
        capped=len(tail) == COUNT_LIMIT,
    )
