"""Counts the decisions of minutes that are over, for the dashboard. Derived figures: the record does not know them."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from governance.models import EnforcementDecision, IntakeMinute
from governance.selectors.console import id_floor, id_moment

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
    until = whole_minute(at - SETTLED)
    newest = IntakeMinute.objects.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + MINUTE, until - KEPT) if newest else until - KEPT
    ahead = EnforcementDecision.objects.filter(id__gte=id_floor(since), id__lt=id_floor(until)).order_by("id")
    first = ahead.values_list("id", flat=True).first()
    if first is None:
        return 0
    since = whole_minute(id_moment(first))
    with connection.cursor() as cursor:
        cursor.execute(COUNT, [id_floor(since), id_floor(min(until, since + AT_ONCE))])
        counted = int(cursor.rowcount)
    IntakeMinute.objects.filter(minute__lt=at - KEPT).delete()
    return counted


def whole_minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)
