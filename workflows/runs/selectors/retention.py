"""Runs and unmatched events as subjects of retention, and the tables of this app and of the ledger in an export."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.retention import attempt_ledger_about as attempts_ledger_about
from attempts.lifecycle.states import FINAL_STATES, AttemptState
from attempts.reviews.models import Review
from governance.ledger.models import LedgerEntry
from governance.regions.rules import years_later
from governance.retention.hooks import ExportTable, SubjectKind
from governance.retention.models import ErasedPayload
from governance.retention.rules import RetentionSubject
from governance.retention.selectors.retention import terms_for
from governance.tenancy.models import Organization
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.events.models import OutboxEvent, ParkedMessage, WorkflowEvent
from workflows.modules.models import Module, ModuleCall, ModuleVersion
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance, WorkflowIntervention, WorkflowStep
from workflows.runs.states import ENDED
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint

CASE = "case/"


def _instances_about(organization_id: UUID, reference: str) -> QuerySet[WorkflowInstance]:
    """Runs whose case or patient reference this is."""
    about = Q(context__patient_id=reference)
    with suppress(ValueError):
        about |= Q(case_id=UUID(reference.removeprefix(CASE)))
    return WorkflowInstance.objects.filter(about, organization_id=organization_id)


def _subjects(rows: QuerySet[WorkflowInstance]) -> list[RetentionSubject]:
    """Newest first: a superseded run is needed as long as the run that replaced it, whose last activity counts for it
    too."""
    opened = Attempt.objects.filter(id__in=_opened(OuterRef(OuterRef("id"))))
    unresolved = opened.filter(state=AttemptState.QUARANTINED).filter(
        Q(quarantine_case=None) | Q(quarantine_case__resolution="")
    )
    log = WorkflowEvent.objects.filter(Q(instance_id=OuterRef("id")) | Q(instance_id=OuterRef("superseded_by_id")))
    last = log.order_by().values("organization_id").annotate(last=Max("received_at")).values("last")
    rows = (
        rows.filter(erased_at=None)
        .select_related("contract")
        .annotate(
            unresolved=Exists(unresolved),
            going=Exists(opened.exclude(state__in=FINAL_STATES)),
            last=Subquery(last),
        )
    )
    steps = WorkflowStep.objects.filter(instance__in=rows.values("id"), governed_attempt__isnull=False)
    attempts: dict[UUID, list[UUID]] = {}
    for instance_id, attempt_id in steps.values_list("instance_id", "governed_attempt"):
        attempts.setdefault(instance_id, []).extend([attempt_id] if attempt_id else [])
    return [_subject(row, attempts.get(row.id, [])) for row in rows.order_by("-id")]


def _opened(instance_id: Any) -> QuerySet[WorkflowStep, Any]:
    return WorkflowStep.objects.filter(instance_id=instance_id).values("governed_attempt")


def _subject(row: Any, attempts: list[UUID]) -> RetentionSubject:
    named = {str(row.case_id), f"{CASE}{row.case_id}", row.context.get("patient_id") or ""}
    return RetentionSubject(
        kind="run",
        id=row.id,
        created_at=row.created_at,
        last_activity_at=max(moment for moment in (row.created_at, row.completed_at, row.last) if moment),
        retention_until=row.retention_until,
        finished=row.state in ENDED and not row.going,
        unresolved=row.unresolved,
        contract=row.contract.slug if row.contract else "",
        references=frozenset(named - {""}) | {f"attempt/{one}" for one in attempts},
    )


def _due(organization_id: UUID, at: datetime, after: UUID, limit: int) -> list[RetentionSubject]:
    rows = WorkflowInstance.objects.filter(organization_id=organization_id, retention_until__lte=at, erased_at=None)
    ids = list(rows.filter(id__gt=after).order_by("id").values_list("id", flat=True)[:limit])
    return _subjects(WorkflowInstance.objects.filter(id__in=ids)) if ids else []


def _get(organization_id: UUID, row_id: UUID) -> RetentionSubject | None:
    return next(iter(_subjects(WorkflowInstance.objects.filter(organization_id=organization_id, id=row_id))), None)


def _unstamped(organization_id: UUID, limit: int) -> int:
    rows = WorkflowInstance.objects.filter(organization_id=organization_id, retention_until=None, erased_at=None)
    return rows.order_by()[:limit].count()


RUN = SubjectKind(
    name="run",
    title="Runs",
    door="workflows_erase",
    due=_due,
    about=lambda organization_id, reference: _subjects(_instances_about(organization_id, reference)),
    get=_get,
    unstamped=_unstamped,
)


def _kept_events(organization_id: UUID) -> QuerySet[WorkflowEvent]:
    return WorkflowEvent.objects.filter(organization_id=organization_id, instance=None).exclude(envelope={})


def _event_subjects(organization_id: UUID, rows: QuerySet[WorkflowEvent]) -> list[RetentionSubject]:
    """They have no retention stamp: they are kept as long as the organization's regions say, from the day they came."""
    years = terms_for(organization=Organization.objects.get(id=organization_id)).terms.retention_years
    return [
        RetentionSubject(
            kind="event",
            id=row_id,
            created_at=received_at,
            last_activity_at=received_at,
            retention_until=years_later(received_at, years=years),
            finished=True,
            unresolved=False,
            references=frozenset({str(case_id), f"{CASE}{case_id}"}) if case_id else frozenset(),
        )
        for row_id, received_at, case_id in rows.order_by("id").values_list("id", "received_at", "case_id")
    ]


def _events_due(organization_id: UUID, at: datetime, after: UUID, limit: int) -> list[RetentionSubject]:
    """Events whose retention is over, from the oldest `limit` ones."""
    rows = _kept_events(organization_id).filter(id__gt=after)
    ids = list(rows.order_by("id").values_list("id", flat=True)[:limit])
    found = _event_subjects(organization_id, WorkflowEvent.objects.filter(id__in=ids)) if ids else []
    return [one for one in found if one.retention_until is not None and one.retention_until <= at]


def _events_about(organization_id: UUID, reference: str) -> list[RetentionSubject]:
    try:
        rows = _kept_events(organization_id).filter(case_id=UUID(reference.removeprefix(CASE)))
    except ValueError:
        return []
    # Those of a case that had a run go with it.
    runs = WorkflowInstance.objects.filter(organization_id=organization_id, case_id=OuterRef("case_id"))
    return _event_subjects(organization_id, rows.exclude(Exists(runs)))


EVENT = SubjectKind(
    name="event",
    title="Events without a run",
    door="workflows_erase_event",
    due=_events_due,
    about=_events_about,
    get=lambda organization_id, row_id: next(
        iter(_event_subjects(organization_id, _kept_events(organization_id).filter(id=row_id))), None
    ),
    unstamped=lambda organization_id, limit: 0,
)


class OfRun:
    """Rows of runs that are about the reference."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, organization_id: UUID, reference: str) -> Q:
        return Q(**{f"{self.path}__in": _instances_about(organization_id, reference).values("id")})


def _events(organization_id: UUID, reference: str) -> Q:
    """Also events of the case that matched no run."""
    found = OfRun("instance")(organization_id, reference)
    try:
        return found | Q(case_id=UUID(reference.removeprefix(CASE)))
    except ValueError:
        return found


def _run_ledger_about(organization_id: UUID, reference: str) -> Q:
    runs = _instances_about(organization_id, reference)
    steps = WorkflowStep.objects.filter(instance__in=runs.values("id"))
    reviews = Review.objects.filter(origin_step__in=steps.values("id"))
    own = Q(subject_id__in=runs.values("id")) | Q(subject_id__in=reviews.values("id"))
    return own | attempts_ledger_about(organization_id, reference)


def _payloads(organization_id: UUID, reference: str) -> Q:
    return Q(entry__in=LedgerEntry.objects.filter(_run_ledger_about(organization_id, reference)).values("id"))


def _calls(organization_id: UUID, reference: str) -> Q:
    """Requests over http of runs that are about the reference."""
    steps = WorkflowStep.objects.filter(instance__in=_instances_about(organization_id, reference).values("id"))
    return Q(step__in=steps.values("id"))


def workflow_export_tables() -> Iterable[ExportTable]:
    # Archives have always said `status`; the column is `state`.
    through, called = "instance__organization_id", {"state": "status"}
    return [
        ExportTable(LedgerEntry, about=_run_ledger_about),
        ExportTable(ErasedPayload, "item__organization_id", about=_payloads),
        ExportTable(WorkflowInstance, about=OfRun("id"), called=called, without=frozenset({"secret"})),
        ExportTable(WorkflowStep, through, about=OfRun("instance"), called=called),
        ExportTable(WorkflowEvent, about=_events),
        ExportTable(OutboxEvent, about=OfRun("instance")),
        ExportTable(WorkflowIntervention, through, about=OfRun("instance")),
        ExportTable(WorkflowDefinition, called=called),
        ExportTable(WorkflowDefinitionRevision, "workflow_definition__organization_id"),
        ExportTable(BulkIntervention),
        ExportTable(ParkedMessage),
        ExportTable(WebhookEndpoint),
        ExportTable(Module),
        ExportTable(ModuleVersion, "module__organization_id"),
        ExportTable(ModuleCall, about=_calls),
        ExportTable(WebhookDelivery, about=OfRun("subject_id")),
        ExportTable(WebhookAttempt, "delivery__organization_id", about=OfRun("delivery__subject_id")),
        ExportTable(BulkItem, "bulk__organization_id", about=OfRun("instance")),
    ]


LEFT_OUT = {
    "workflows.modulesecret": "a secret's salt; of no use to anybody without the installation's own secret",
    "workflows.webhooksecret": "a secret's salt; of no use to anybody without the installation's own secret",
    "workflows.nudge": "a signal between two transactions; deleted once it was followed",
    "workflows.workflowinstancecurrentstep": "a view of the steps, which are exported",
}
