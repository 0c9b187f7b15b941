"""Figures of the overview about runs and events, each bounded."""

from dataclasses import dataclass
from datetime import datetime

from governance.selectors.console import COUNT_LIMIT
from governance.selectors.lists import counted_by
from governance.selectors.search import by_organization
from workflows.models import OutboxEvent, WorkflowEvent, WorkflowInstance
from workflows.states import EventOutcome, InstanceStatus, OutboxStatus


@dataclass(frozen=True, slots=True)
class Outbox:
    """`lag_seconds` is how long the oldest event that is due has waited to be published."""

    waiting: int
    lag_seconds: float


def halts_by_reason(*, most: int = 8) -> list[tuple[str, int]]:
    """Runs that are halted now."""
    rows = WorkflowInstance.objects.filter(by_organization(), status=InstanceStatus.HALTED)
    return counted_by(rows, "halt_reason")[:most]


def outbox_waiting(*, at: datetime) -> Outbox:
    """Of the pending ones, in the order in which they are due."""
    rows = OutboxEvent.objects.filter(status=OutboxStatus.PENDING).order_by("next_try_at", "id")
    oldest = min(rows.values_list("created_at", flat=True)[:100], default=at)
    return Outbox(rows.order_by()[:COUNT_LIMIT].count(), max(0.0, (at - oldest).total_seconds()))


def events_unmatched() -> int:
    """Kept because no run took them."""
    rows = WorkflowEvent.objects.filter(by_organization(), outcome=EventOutcome.UNMATCHED).order_by()
    return rows[:COUNT_LIMIT].count()
