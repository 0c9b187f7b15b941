"""Reading for the console's pages of runs; every answer is bounded."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.models import LedgerEntry, ServiceAccount
from governance.selectors import people_behind, snapshot_load
from governance.selectors.console import COUNT_LIMIT
from governance.selectors.lists import NEWEST
from workflows.models import OutboxEvent, WorkflowInstance
from workflows.states import ENDED, InstanceStatus, OutboxStatus


def snapshot_document(*, instance: WorkflowInstance) -> dict[str, Any]:
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
    """Those of the newest thousand halted runs: enough to choose from, whatever modules report."""
    newest = WorkflowInstance.objects.filter(status=InstanceStatus.HALTED).order_by("-id").values("halt_reason")[:1000]
    return sorted({row["halt_reason"] for row in newest})


def runs_by_status(*, limit: int = COUNT_LIMIT) -> dict[str, int]:
    """Those that have not ended, for the front page; each status counted up to the limit."""
    rows, going = WorkflowInstance.objects.order_by(), [status for status in InstanceStatus if status not in ENDED]
    return {status.value: rows.filter(status=status)[:limit].count() for status in going}


def outbox_list() -> QuerySet[OutboxEvent]:
    """Newest first, of the installation's newest ten thousand: no index has them by organization, and a small one's
    would be looked for among everybody's."""
    whole = OutboxEvent._base_manager.order_by("-id").values_list("id", flat=True)
    oldest = whole[NEWEST : NEWEST + 1].first()
    rows = OutboxEvent.objects.order_by("-id")
    return rows if oldest is None else rows.filter(id__gt=oldest)


def outbox_parked() -> QuerySet[OutboxEvent]:
    """Refused by their streams; a person must look."""
    return OutboxEvent.objects.filter(status=OutboxStatus.PARKED).order_by("-id")


def outbox_stuck() -> QuerySet[OutboxEvent]:
    """Not published yet, oldest first."""
    return OutboxEvent.objects.filter(status=OutboxStatus.PENDING).order_by("next_try_at", "id")
