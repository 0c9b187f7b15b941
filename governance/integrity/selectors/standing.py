"""Reads how far the record is checked, which faults are open, and whether they stop work."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from governance.integrity.models import RecordFault, RecordProgress
from governance.integrity.states import RECORD_DIFFERS
from governance.shutdown.models import Shutdown
from governance.shutdown.states import ShutdownState
from reasoncodes.base.tenancy import every_tenant

MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class RecordStanding:
    """`open` faults stop work until two people accept them."""

    progress: RecordProgress
    open: int
    accepted: int
    denied: list[Shutdown]

    def age(self, *, at: datetime) -> float | None:
        """Seconds since new rows were last compared; None if they never were."""
        checked = self.progress.checked_at
        return None if checked is None else max(0.0, (at - checked).total_seconds())


def progress_get() -> RecordProgress:
    return RecordProgress.objects.filter(id=1).first() or RecordProgress()


def faults_open() -> QuerySet[RecordFault]:
    return RecordFault.objects.filter(acceptance=None).order_by("-id")


def record_denials(*, organization_ids: Collection[UUID] | None = None) -> list[Shutdown]:
    """Shutdowns that faults of the record engaged and that stand. For organizations: those that cover one of them."""
    # Callers may have the scope of one organization, and a fault of all of them covers it too.
    with every_tenant():
        rows = Shutdown.objects.filter(state=ShutdownState.ENGAGED, target=RECORD_DIFFERS, reason_code=RECORD_DIFFERS)
        found = list(rows.order_by("id"))
    if organization_ids is None:
        return found
    return [one for one in found if one.organization_id is None or one.organization_id in organization_ids]


def faults_count() -> int:
    """Open faults, counted up to MOST_COUNTED: every page of the console asks."""
    with every_tenant():
        return len(faults_open().values_list("id", flat=True)[:MOST_COUNTED])


def record_standing() -> RecordStanding:
    with every_tenant():
        found = faults_count()
        return RecordStanding(
            progress_get(), found, RecordFault.objects.exclude(acceptance=None).count(), record_denials()
        )
