"""How the way in and the way out stand: the outbox, the streams' groups, what is parked. Every answer is bounded."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from governance.selectors import tenant_get
from governance.selectors.console import COUNT_LIMIT
from workflows.models import OutboxEvent, ParkedMessage
from workflows.selectors.dashboard import outbox_waiting
from workflows.states import OutboxStatus, ParkedStatus
from workflows.streams import GROUP, consumer_idle_ms, group_standings, inbound_types


@dataclass(frozen=True, slots=True)
class Ways:
    """Counted up to a limit; `outbox_lag` in seconds."""

    outbox_waiting: int
    outbox_lag: float
    outbox_parked: int
    messages_parked: int


def ways(*, at: datetime) -> Ways:
    outbox = outbox_waiting(at=at)
    stuck = OutboxEvent.objects.filter(status=OutboxStatus.PARKED).order_by()[:COUNT_LIMIT].count()
    parked = ParkedMessage.objects.filter(status=ParkedStatus.PARKED).order_by()[:COUNT_LIMIT].count()
    return Ways(outbox.waiting, outbox.lag_seconds, stuck, parked)


def inbound_trouble(*, most_behind: int, silent_seconds: float) -> str | None:
    """What an operator should know about the way in; nothing is lost by it, it only waits."""
    idle = consumer_idle_ms()
    if idle is None:
        return "no event consumer has ever asked for messages: start `manage.py consume_events`"
    if idle > silent_seconds * 1000:
        return f"no event consumer has asked for messages for {idle / 1000:.0f} s"
    ours = [one for one in group_standings() if one.group == GROUP and one.event_type in set(inbound_types())]
    behind = sum((one.lag or 0) + one.pending for one in ours)
    return f"the event consumers are {behind:,} messages behind" if behind > most_behind else None


def parked_list(
    *, status: str | None = None, why: str | None = None, event_type: str | None = None, event_id: UUID | None = None
) -> QuerySet[ParkedMessage]:
    asked = {"status": status, "why": why, "event_type": event_type, "event_id": event_id}
    return ParkedMessage.objects.filter(**{name: value for name, value in asked.items() if value}).order_by("-id")


def parked_get(*, message_id: UUID) -> ParkedMessage:
    return tenant_get(ParkedMessage, message_id)
