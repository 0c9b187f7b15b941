"""Reads proposals, and the quarantine cases that lead to one."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, QuerySet

from attempts.proposals.models import ShutdownProposal
from attempts.quarantine.models import QuarantineCase
from governance.tenancy.selectors import tenant_get


def proposal_list(*, is_open: bool | None = None) -> QuerySet[ShutdownProposal]:
    rows = ShutdownProposal.objects.select_related("organization", "contract", "answer").order_by("-id")
    return rows if is_open is None else rows.filter(answer__isnull=is_open)


def proposal_get(*, proposal_id: UUID) -> ShutdownProposal:
    return proposal_list().filter(id=proposal_id).first() or tenant_get(ShutdownProposal, proposal_id)


def proposals_untold(*, since: datetime, limit: int = 100) -> list[UUID]:
    """Open proposals that the operators were not told of yet, the oldest first."""
    rows = ShutdownProposal.objects.filter(notice__isnull=True, answer__isnull=True, at__gte=since)
    return list(rows.order_by("id").values_list("id", flat=True)[:limit])


def contracts_failing(*, since: datetime) -> list[UUID]:
    """Contracts with a case that was opened since then."""
    # By the id, which begins with its time: the primary key has the newest cases together, and no other index is read.
    rows = QuarantineCase.objects.filter(id__gte=_first_id(since)).order_by()
    return list(rows.values_list("attempt__contract_id", flat=True).distinct())


def cases_since(*, contract_id: UUID, since: datetime, after: datetime | None) -> list[tuple[UUID, datetime, str]]:
    """Id, opening and category of a contract's cases, in the order of their opening; only those after an answer."""
    rows = QuarantineCase.objects.filter(id__gte=_first_id(since), attempt__contract_id=contract_id)
    if after is not None:
        rows = rows.filter(opened_at__gt=after)
    return list(rows.order_by("opened_at", "id").annotate(of=F("category")).values_list("id", "opened_at", "of"))


# A case may be recorded later than it began: the end of a lease is noticed by a scheduled task.
NOTICED_WITHIN = timedelta(minutes=10)


def _first_id(moment: datetime) -> UUID:
    """The lowest id of this moment."""
    milliseconds = int((moment - NOTICED_WITHIN).timestamp() * 1000)
    return UUID(int=milliseconds << 80)
