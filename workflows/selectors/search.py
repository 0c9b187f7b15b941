"""Finding runs, definitions and events by what people have in hand. Exact, each by an index, each answer bounded."""

from uuid import UUID

from django.db.models import Q, QuerySet

from governance.selectors.search import by_organization
from workflows.models import WorkflowDefinition, WorkflowEvent, WorkflowInstance, WorkflowStep
from workflows.selectors.run import of_case

FOUND = 20


def runs_by_case(*, case_id: UUID) -> list[WorkflowInstance]:
    """The case's present run, and those that it superseded."""
    rows = WorkflowInstance.objects.filter(by_organization(), of_case(case_id))
    return list(_shown(rows)[:FOUND])


def runs_by_correlation(*, correlation_id: UUID) -> list[WorkflowInstance]:
    """The run whose step asked with this id, and runs that an event with it began."""
    asked = WorkflowStep.objects.filter(id=correlation_id).values_list("instance_id", flat=True)
    begun = WorkflowEvent.objects.filter(Q(number=1) | Q(instance=None), correlation_id=correlation_id)
    ids = {*asked, *begun.exclude(instance=None).values_list("instance_id", flat=True)[:FOUND]}
    return list(_shown(WorkflowInstance.objects.filter(id__in=ids))[:FOUND]) if ids else []


def events_by_event_id(*, event_id: UUID) -> list[WorkflowEvent]:
    """By the id that the module gave it."""
    rows = WorkflowEvent.objects.filter(by_organization(), event_id=event_id, event_id__isnull=False)
    return list(rows.select_related("organization").defer("envelope", "facts")[:FOUND])


def events_by_correlation(*, correlation_id: UUID) -> list[WorkflowEvent]:
    """Events with this id that no run took."""
    rows = WorkflowEvent.objects.filter(Q(number=1) | Q(instance=None), correlation_id=correlation_id, instance=None)
    return list(rows.select_related("organization").defer("envelope", "facts")[:FOUND])


def definitions_by_slug(*, slug: str) -> list[WorkflowDefinition]:
    rows = WorkflowDefinition.objects.filter(slug=slug, is_template=False).select_related("organization", "product")
    return list(rows.defer("definition").order_by("-id")[:FOUND])


def _shown(rows: QuerySet[WorkflowInstance]) -> QuerySet[WorkflowInstance]:
    return rows.select_related("organization", "definition").defer("context", "early", "definition__definition")
