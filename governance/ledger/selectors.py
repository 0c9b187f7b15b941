"""Reading the ledger."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from governance.console.models import IntakeMinute
from governance.console.selectors.pages import id_floor, id_moment
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.tenancy.selectors import tenant_get


def ledger_entry_list(
    *, action: str | None = None, subject_id: UUID | None = None, reason_code: str | None = None
) -> QuerySet[LedgerEntry]:
    rows = LedgerEntry.objects.order_by("-id")
    if action is not None:
        rows = rows.filter(action=action)
    if subject_id is not None:
        rows = rows.filter(subject_id=subject_id)
    if reason_code is not None:
        rows = rows.filter(reason_code=reason_code)
    return rows


def ledger_entry_get(*, entry_id: UUID) -> LedgerEntry:
    return tenant_get(LedgerEntry, entry_id)


def reason_code_usage_count(*, organization_id: UUID | None, codes: list[str], limit: int) -> dict[str, int]:
    rows = LedgerEntry.objects.all()
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    return {code: rows.filter(reason_code=code).order_by()[:limit].count() for code in codes}


KEPT = timedelta(days=8)
SETTLED = timedelta(seconds=30)  # a decision's id is made before its transaction commits
AT_ONCE = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# The id carries the time: the primary key alone finds the minutes and says which is which.
COUNT = """
INSERT INTO governance_intakeminute (id, organization_id, minute, verdict, decisions)
SELECT gen_random_uuid(), organization_id, minute, verdict, count(*) FROM (
    SELECT organization_id, verdict, to_timestamp(
        (('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint / 60000) * 60) AS minute
    FROM governance_enforcementdecision WHERE id >= %s AND id < %s) AS decided
GROUP BY organization_id, minute, verdict
ON CONFLICT DO NOTHING
"""


def minutes_count(*, at: datetime) -> int:
    """From the first minute that is not counted yet, at most an hour of them; a doubled tick counts nothing twice."""
    until = _whole_minute(at - SETTLED)
    newest = IntakeMinute.objects.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + MINUTE, until - KEPT) if newest else until - KEPT
    ahead = EnforcementDecision.objects.filter(id__gte=id_floor(since), id__lt=id_floor(until)).order_by("id")
    first = ahead.values_list("id", flat=True).first()
    if first is None:
        return 0
    since = _whole_minute(id_moment(first))
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [id_floor(since), id_floor(min(until, since + AT_ONCE))])
        counted = int(cursor.rowcount)
    IntakeMinute.objects.filter(minute__lt=at - KEPT).delete()
    return counted


def _whole_minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)
