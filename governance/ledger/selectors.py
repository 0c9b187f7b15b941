"""Reads the ledger, and counts decisions by the minute for the console's overview (`minutes_count`, which writes)."""

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
    """How often each code is in the ledger, counted up to `limit`."""
    rows = LedgerEntry.objects.all()
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    # With a limit: counting all entries of a frequent code would read a large part of the ledger for one page.
    return {code: rows.filter(reason_code=code).order_by()[:limit].count() for code in codes}


KEPT = timedelta(days=8)
# A decision's id is made before its transaction commits: a minute that is counted too early would miss decisions.
SETTLED = timedelta(seconds=30)
# One run counts at most this much, so that a long backlog does not become one long statement.
AT_ONCE = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# The first 48 bits of a UUIDv7 are its time: the primary key finds the decisions of a minute, without another index.
# ON CONFLICT: two runs at once count the same minutes, and the second one inserts nothing.
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
    """Count from the first minute that is not counted yet, at most an hour. Returns how many rows were inserted. Safe
    to run twice."""
    until = _whole_minute(at - SETTLED)
    newest = IntakeMinute.objects.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + MINUTE, until - KEPT) if newest else until - KEPT
    ahead = EnforcementDecision.objects.filter(id__gte=id_floor(since), id__lt=id_floor(until)).order_by("id")
    first = ahead.values_list("id", flat=True).first()
    if first is None:
        return 0
    # From the first decision on: otherwise hours without any decision would be walked through run by run.
    since = _whole_minute(id_moment(first))
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [id_floor(since), id_floor(min(until, since + AT_ONCE))])
        counted = int(cursor.rowcount)
    IntakeMinute.objects.filter(minute__lt=at - KEPT).delete()
    return counted


def _whole_minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)
