"""Stores an event that matched no run or no active definition. A person can process it again later."""

from datetime import datetime
from typing import Any
from uuid import UUID

from governance.sql.insert import insert_together
from workflows.events.models import WorkflowEvent
from workflows.events.rules import correlation_of
from workflows.events.states import EventOutcome


def event_keep(*, envelope: dict[str, Any], at: datetime, redrives: UUID | None = None) -> WorkflowEvent:
    event = WorkflowEvent(
        organization_id=UUID(envelope["org_id"]),
        event_id=None if redrives else UUID(envelope["event_id"]),
        event_type=envelope["event_type"],
        source="module",
        case_id=UUID(envelope["case_id"]),
        correlation_id=correlation_of(envelope),
        envelope=envelope,
        outcome=EventOutcome.UNMATCHED,
        redrives_id=redrives,
        at=at,
        received_at=at,
    )
    insert_together([event])
    return event
