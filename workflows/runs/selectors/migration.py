"""Reads what a migration of runs needs: the runs under a version, and where each came from."""

from collections.abc import Iterable
from uuid import UUID

from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.states import DefinitionStatus
from workflows.events.models import WorkflowEvent
from workflows.runs.models import LIVE, WorkflowInstance
from workflows.runs.rules import MIGRATED


def definition_version(*, organization_id: UUID, slug: str, version: int) -> WorkflowDefinition | None:
    """A published version with the same slug."""
    rows = WorkflowDefinition.objects.filter(
        organization_id=organization_id, slug=slug, version=version, is_template=False
    )
    return rows.exclude(state=DefinitionStatus.DRAFT).exclude(snapshot_sha256="").first()


def runs_under(*, organization_id: UUID, definition_id: UUID, limit: int) -> list[WorkflowInstance]:
    """Those that have not ended, oldest first."""
    rows = WorkflowInstance.objects.filter(organization_id=organization_id, state__in=LIVE, definition_id=definition_id)
    return list(rows.select_related("definition", "contract", "organization").order_by("id")[:limit])


def came_from(*, instance: WorkflowInstance) -> UUID | None:
    """The version that it was moved from, if nothing has happened since."""
    last = WorkflowEvent.objects.filter(instance=instance, number=instance.events).first()
    if last is None or last.event_type != MIGRATED:
        return None
    return UUID(last.envelope["from"]["definition"])


def first_definition(*, instance: WorkflowInstance, events: Iterable[WorkflowEvent]) -> tuple[UUID, str]:
    """The definition, and the hash of its frozen copy, with which the run began. `events` are its log in order."""
    first = next((event for event in events if event.event_type == MIGRATED), None)
    if first is None:
        return instance.definition_id, instance.definition_sha256
    return UUID(first.envelope["from"]["definition"]), first.envelope["from"]["sha256"]
