"""An event that found no run, or no active definition: kept, and a person can drive it again."""

from datetime import datetime
from typing import Any
from uuid import UUID

from governance.sql.insert import insert_together
from workflows.events.models import WorkflowEvent
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


def correlation_of(envelope: dict[str, Any]) -> UUID | None:
    """Ours are UUIDs. A client-driven module's own may be any reference, and matches no request of ours."""
    try:
        return UUID(envelope["correlation_id"])
    except ValueError:
        return None
