"""What the console keeps for itself: saved filters, and decisions counted by the minute. Not part of the record."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import connection

from governance.boundary.services import text_check
from governance.console.models import IntakeMinute, SavedFilter
from governance.console.selectors.lists import filter_query, saved_filters
from governance.console.selectors.pages import id_floor, id_moment
from governance.enforcement.models import EnforcementDecision
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound

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
    FROM governance_enforcementdecision WHERE id >= %s AND id < %s AND act = '') AS decided
GROUP BY organization_id, minute, verdict
ON CONFLICT DO NOTHING
"""


def minutes_count(*, at: datetime) -> int:
    """Count from the first minute that is not counted yet, at most an hour. Returns how many rows were inserted. Safe
    to run twice."""
    until = _whole_minute(at - SETTLED)
    newest = IntakeMinute.objects.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + MINUTE, until - KEPT) if newest else until - KEPT
    ahead = EnforcementDecision.objects.filter(act="", id__gte=id_floor(since), id__lt=id_floor(until)).order_by("id")
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


# Bounds what one person can store for one list.
MOST = 20


def filter_save(*, actor: Actor, at: datetime, page: str, name: str, query: str) -> SavedFilter:
    """Saves a filter. A filter with the same name is replaced."""
    # PostgreSQL cannot store NUL, and the error would be a 500.
    name, kept = name.replace("\x00", "").strip(), filter_query(query.replace("\x00", "").replace("%00", ""))
    if not name or len(name) > 60:
        raise InvalidInput(errors=[FieldError("/name", "must have 1 to 60 characters")])
    # The name is free text: it may not contain a person's name or a secret either.
    text_check(text=name, pointer="/name")
    if not kept or len(kept) > 1000:
        raise InvalidInput(errors=[FieldError("/query", "filters nothing, or by too much")])
    known = {row.name for row in saved_filters(user_id=_person(actor), page=page)}
    if len(known | {name}) > MOST:
        raise InvalidInput(errors=[FieldError("/name", f"is one too many: {MOST} is the most for one list")])
    row, _ = SavedFilter.objects.update_or_create(
        user_id=_person(actor), page=page, name=name, defaults={"query": kept, "created_at": at}
    )
    return row


def filter_forget(*, actor: Actor, filter_id: UUID) -> None:
    """Deletes one of the person's own filters. Somebody else's is 404."""
    gone, _ = SavedFilter.objects.filter(id=filter_id, user_id=_person(actor)).delete()
    if not gone:
        raise NotFound


def _person(actor: Actor) -> UUID:
    if actor.id is None:
        raise NotFound
    return actor.id
