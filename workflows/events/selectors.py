"""Reads unmatched and drifted events, parked messages, and how far outbox and streams are behind."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from governance.console.selectors.pages import COUNT_LIMIT
from governance.tenancy.selectors import tenant_get
from workflows.events.adapters.streams import GROUP, consumer_idle_ms, group_standings, inbound_types
from workflows.events.models import OutboxEvent, ParkedMessage, WorkflowEvent
from workflows.events.states import EventOutcome, OutboxStatus, ParkedStatus
from workflows.runs.selectors.console import outbox_waiting


def event_list(
    *, outcome: str | None = None, drift: str | None = None, redriven: bool | None = None, case_id: UUID | None = None
) -> QuerySet[WorkflowEvent]:
    """Unmatched events, unless drift is asked for. Each has `redriven_by`: the event that processing it again made."""
    again = WorkflowEvent.objects.filter(redrives=OuterRef("id")).values("id")[:1]
    rows = WorkflowEvent.objects.annotate(redriven_by=Subquery(again)).order_by("-id")
    drifted = drift is not None or outcome == EventOutcome.DRIFT
    if drifted:
        rows = rows.exclude(drift="").filter(**{"drift": drift} if drift else {})
    if outcome == EventOutcome.UNMATCHED or not drifted:
        rows = rows.filter(outcome=EventOutcome.UNMATCHED)
    if redriven:
        # Starts from the redrives, which are few: a condition on every unmatched event would read all of them.
        rows = rows.filter(id__in=WorkflowEvent.objects.filter(redrives__isnull=False).values("redrives_id"))
    elif redriven is not None:
        # Not by the annotation: for "subquery IS NULL" the planner expects next to no rows, and reads and sorts them
        # all.
        rows = rows.filter(~Exists(WorkflowEvent.objects.filter(redrives=OuterRef("id"))))
    return rows if case_id is None else rows.filter(case_id=case_id)


def event_get(*, event_id: UUID) -> WorkflowEvent:
    """By our own id, not the module's event_id."""
    return tenant_get(WorkflowEvent, event_id)


def event_was_redriven(*, event_id: UUID) -> bool:
    return WorkflowEvent.objects.filter(redrives_id=event_id).exists()


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
    """A warning about the inbound streams, or None. Nothing is lost meanwhile; messages wait in the streams."""
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
