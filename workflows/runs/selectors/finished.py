"""Reads finished runs of a definition, whatever its version."""

from uuid import UUID

from workflows.definitions.models import WorkflowDefinition
from workflows.runs.models import WorkflowInstance
from workflows.runs.states import ENDED


def finished_runs(*, organization_id: UUID, slug: str, last: int) -> list[WorkflowInstance]:
    """The newest ones under any version with its slug. Erased ones have nothing left to compare."""
    versions = WorkflowDefinition.objects.filter(organization_id=organization_id, slug=slug, is_template=False)
    rows = WorkflowInstance.objects.filter(
        organization_id=organization_id, definition__in=versions, state__in=ENDED, erased_at=None
    )
    return list(rows.select_related("definition").defer("definition__definition").order_by("-id")[:last])
