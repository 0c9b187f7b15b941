"""Reads for the console's pages and its search: runs, events, the outbox. Every result is bounded."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.console.selectors.lists import NEWEST, by_organization, counted_by
from governance.console.selectors.pages import COUNT_LIMIT
from governance.enforcement.models import snapshot_load
from governance.ledger.models import LedgerEntry
from governance.people.models import ServiceAccount
from governance.people.selectors.people import people_behind
from workflows.definitions.models import WorkflowDefinition
from workflows.events.models import OutboxEvent, WorkflowEvent
from workflows.events.states import EventOutcome, OutboxStatus
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import of_case
from workflows.runs.states import ENDED, InstanceStatus


def run_document(*, instance: WorkflowInstance) -> dict[str, Any]:
    """The frozen copy of the definition that the run follows."""
    document: dict[str, Any] = snapshot_load(instance.definition_sha256)["definition"]
    return document


def instance_entries(*, instance_id: UUID, limit: int = 500) -> list[LedgerEntry]:
    """What the ledger says about the run, newest first."""
    return list(LedgerEntry.objects.filter(subject_id=instance_id).order_by("-id")[:limit])


def names_of(*, refs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """People and service accounts by the reference that stands for them in the record; erased ones are missing."""
    known = set(refs)
    found = people_behind(commitments={ref for kind, ref in known if kind == "person"})
    ids = {UUID(ref) for kind, ref in known if kind == "service" and ref}
    slugs = ServiceAccount.objects.filter(id__in=ids).values_list("id", "slug") if ids else []
    return found | {str(id_): slug for id_, slug in slugs}


def halt_reasons() -> list[str]:
    """The halt reasons of the newest thousand halted runs, for a filter's choices."""
    newest = WorkflowInstance.objects.filter(state=InstanceStatus.HALTED).order_by("-id").values("halt_reason")[:1000]
    return sorted({row["halt_reason"] for row in newest})


def runs_by_status(*, limit: int = COUNT_LIMIT) -> dict[str, int]:
    """Runs that have not ended, by state, for the front page. Each state is counted up to the limit."""
    rows, going = WorkflowInstance.objects.order_by(), [status for status in InstanceStatus if status not in ENDED]
    return {status.value: rows.filter(state=status)[:limit].count() for status in going}


def outbox_list() -> QuerySet[OutboxEvent]:
    """Newest first, within the newest ten thousand of the installation."""
    # No index has outbox rows by organization: for a small organization PostgreSQL would read everybody's rows to find
    # them.
    whole = OutboxEvent._base_manager.order_by("-id").values_list("id", flat=True)
    oldest = whole[NEWEST : NEWEST + 1].first()
    rows = OutboxEvent.objects.order_by("-id")
    return rows if oldest is None else rows.filter(id__gt=oldest)


def outbox_parked() -> QuerySet[OutboxEvent]:
    """Events that their streams refused; a person must act."""
    return OutboxEvent.objects.filter(status=OutboxStatus.PARKED).order_by("-id")


def outbox_stuck() -> QuerySet[OutboxEvent]:
    """Not published yet, oldest first."""
    return OutboxEvent.objects.filter(status=OutboxStatus.PENDING).order_by("next_try_at", "id")


@dataclass(frozen=True, slots=True)
class Outbox:
    """`lag_seconds`: how long the oldest due event has waited to be published."""

    waiting: int
    lag_seconds: float


def halts_by_reason(*, most: int = 8) -> list[tuple[str, int]]:
    """Runs that are halted now."""
    rows = WorkflowInstance.objects.filter(by_organization(), state=InstanceStatus.HALTED)
    return counted_by(rows, "halt_reason")[:most]


def outbox_waiting(*, at: datetime) -> Outbox:
    """Of the pending ones, in the order in which they are due."""
    rows = OutboxEvent.objects.filter(status=OutboxStatus.PENDING).order_by("next_try_at", "id")
    oldest = min(rows.values_list("created_at", flat=True)[:100], default=at)
    return Outbox(rows.order_by()[:COUNT_LIMIT].count(), max(0.0, (at - oldest).total_seconds()))


def events_unmatched() -> int:
    """How many events were kept because no run matched."""
    rows = WorkflowEvent.objects.filter(by_organization(), outcome=EventOutcome.UNMATCHED).order_by()
    return rows[:COUNT_LIMIT].count()


FOUND = 20


def runs_by_case(*, case_id: UUID) -> list[WorkflowInstance]:
    """The case's current run, and the superseded ones."""
    rows = WorkflowInstance.objects.filter(by_organization(), of_case(case_id))
    return list(_shown(rows)[:FOUND])


def runs_by_correlation(*, correlation_id: UUID) -> list[WorkflowInstance]:
    """The run whose step has this id, and runs that an event with this correlation id started."""
    asked = WorkflowStep.objects.filter(id=correlation_id).values_list("instance_id", flat=True)
    begun = WorkflowEvent.objects.filter(Q(number=1) | Q(instance=None), correlation_id=correlation_id)
    ids = {*asked, *begun.exclude(instance=None).values_list("instance_id", flat=True)[:FOUND]}
    return list(_shown(WorkflowInstance.objects.filter(id__in=ids))[:FOUND]) if ids else []


def events_by_event_id(*, event_id: UUID) -> list[WorkflowEvent]:
    """By the id that the module gave it."""
    rows = WorkflowEvent.objects.filter(by_organization(), event_id=event_id, event_id__isnull=False)
    return list(rows.select_related("organization").defer("envelope", "facts")[:FOUND])


def events_by_correlation(*, correlation_id: UUID) -> list[WorkflowEvent]:
    """Events with this correlation id that matched no run."""
    rows = WorkflowEvent.objects.filter(Q(number=1) | Q(instance=None), correlation_id=correlation_id, instance=None)
    return list(rows.select_related("organization").defer("envelope", "facts")[:FOUND])


def definitions_by_slug(*, slug: str) -> list[WorkflowDefinition]:
    rows = WorkflowDefinition.objects.filter(slug=slug, is_template=False).select_related("organization", "product")
    return list(rows.defer("definition").order_by("-id")[:FOUND])


def _shown(rows: QuerySet[WorkflowInstance]) -> QuerySet[WorkflowInstance]:
    return rows.select_related("organization", "definition").defer("context", "early", "definition__definition")
