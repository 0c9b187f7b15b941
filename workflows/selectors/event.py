"""Reading events that no run took: kept because nothing matched, or out of order."""

from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from governance.selectors import tenant_get
from workflows.models import WorkflowEvent
from workflows.states import EventOutcome


def event_list(
    *, outcome: str | None = None, drift: str | None = None, redriven: bool | None = None, case_id: UUID | None = None
) -> QuerySet[WorkflowEvent]:
    """Unmatched ones unless drift is asked for. Each has `redriven_by`: the event that a person made of it."""
    again = WorkflowEvent.objects.filter(redrives=OuterRef("id")).values("id")[:1]
    rows = WorkflowEvent.objects.annotate(redriven_by=Subquery(again)).order_by("-id")
    drifted = drift is not None or outcome == EventOutcome.DRIFT
    if drifted:
        rows = rows.exclude(drift="").filter(**{"drift": drift} if drift else {})
    if outcome == EventOutcome.UNMATCHED or not drifted:
        rows = rows.filter(outcome=EventOutcome.UNMATCHED)
    if redriven:
        # From those that were made of another one, which are few: asking every kept event would read all of them.
        rows = rows.filter(id__in=WorkflowEvent.objects.filter(redrives__isnull=False).values("redrives_id"))
    elif redriven is not None:
        # Not by the annotation: of a subquery that is null the planner expects next to no rows, and sorts them all.
        rows = rows.filter(~Exists(WorkflowEvent.objects.filter(redrives=OuterRef("id"))))
    return rows if case_id is None else rows.filter(case_id=case_id)


def event_get(*, event_id: UUID) -> WorkflowEvent:
    """By our own id of it."""
    return tenant_get(WorkflowEvent, event_id)


def event_was_redriven(*, event_id: UUID) -> bool:
    return WorkflowEvent.objects.filter(redrives_id=event_id).exists()
