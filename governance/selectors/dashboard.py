"""Figures of the overview about decisions, each bounded: what is over is added up from counted minutes."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Sum
from django.db.models.functions import TruncHour

from governance.models import EnforcementDecision, IntakeMinute
from governance.selectors.console import COUNT_LIMIT, id_floor, id_moment
from governance.selectors.search import by_organization

VERDICTS = ("allow", "needs_approval", "deny")
HOURS = 24


@dataclass(frozen=True, slots=True)
class Intake:
    """`hours` are (beginning, {verdict: decisions}), oldest first; `capped` when the newest were too many to count."""

    hours: list[tuple[datetime, dict[str, int]]]
    capped: bool

    @property
    def totals(self) -> dict[str, int]:
        return {verdict: sum(counts[verdict] for _, counts in self.hours) for verdict in VERDICTS}


def intake_by_verdict(*, at: datetime, hours: int = HOURS) -> Intake:
    """Counted minutes by the hour, and what came after the last of them straight from the decisions."""
    this_hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = this_hour - timedelta(hours=hours - 1)
    found: Counter[tuple[datetime, str]] = Counter()
    minutes = IntakeMinute.objects.filter(minute__gte=first).order_by()
    for hour, verdict, decisions in minutes.values_list(TruncHour("minute"), "verdict").annotate(sum=Sum("decisions")):
        found[hour, verdict] += decisions
    newest = IntakeMinute._base_manager.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + timedelta(minutes=1), first) if newest else first
    rows = EnforcementDecision.objects.filter(by_organization(), id__gte=id_floor(since)).order_by("-id")
    tail = list(rows.values_list("id", "verdict")[:COUNT_LIMIT])
    found.update((id_moment(id_).replace(minute=0, second=0, microsecond=0), verdict) for id_, verdict in tail)
    shown = [first + timedelta(hours=number) for number in range(hours)]
    return Intake(
        [(hour, {verdict: found[hour, verdict] for verdict in VERDICTS}) for hour in shown],
        capped=len(tail) == COUNT_LIMIT,
    )
