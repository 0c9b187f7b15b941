"""Finding by what people have in hand: an id, a trace, a key. Exact, each way by an index, each answer bounded."""

import re

from django.db import connection
from django.db.models import Q

from attempts.models import Attempt, IdempotencyRecord
from governance.selectors.lists import newest, uuid_or_none
from governance.selectors.search import ids_in_scope

FOUND = 20
BY_KEY = """
SELECT record.id FROM (
    SELECT id AS organization_id, 'tenant' AS scope FROM governance_organization
    UNION SELECT organization_id, 'contract:' || slug FROM governance_contract
    UNION SELECT organization_id, 'caller:' || id FROM governance_serviceaccount
) AS place
JOIN attempts_idempotencyrecord record USING (organization_id, scope)
WHERE place.organization_id = ANY(%s) AND record.key = %s LIMIT %s
"""
TRACEPARENT = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$")


def trace_of(term: str) -> str:
    """The trace id, also when the whole `traceparent` was pasted."""
    found = TRACEPARENT.match(term.strip().lower())
    return found[1] if found else term.strip()


def attempts_by_trace(*, trace: str) -> list[Attempt]:
    rows = Attempt.objects.filter(request_trace_id=trace_of(trace)).select_related("organization")
    return list(rows.order_by("-id")[:FOUND])


def records_by_key(*, key: str) -> list[IdempotencyRecord]:
    """The index begins with organization and scope, so every scope that a key can have is asked for."""
    with connection.cursor() as cursor:
        cursor.execute(BY_KEY, [list(ids_in_scope()), key, FOUND])
        ids = [id_ for (id_,) in cursor.fetchall()]
    rows = IdempotencyRecord.objects.filter(id__in=ids).defer("body", "parts").select_related("organization")
    return sorted(rows, key=lambda row: row.id, reverse=True)


def attempts_by_key(*, key: str) -> list[Attempt]:
    """Under a record, or (contracts that keep a timeline have none) among the newest ten thousand."""
    found = {row.attempt_id for row in records_by_key(key=key)}
    ids = newest(Attempt.objects.all()).filter(idempotency_key=key).values_list("id", flat=True)[:FOUND]
    rows = Attempt.objects.filter(id__in=found | set(ids)).select_related("organization")
    return list(rows.order_by("-id")[:FOUND])


def attempt_matches(term: str) -> Q:
    """For the list of attempts: an id, a trace, or a key."""
    ids = [attempt.id for attempt in attempts_by_key(key=term)]
    own = uuid_or_none(term)
    return Q(id__in=[*ids, *([own] if own else [])]) | Q(request_trace_id=trace_of(term))


def record_matches(term: str) -> Q:
    """For the list of keys: a key, or the id of the attempt that it guards."""
    own = uuid_or_none(term)
    attempt = Attempt.objects.filter(id=own).first() if own else None
    found = {row.id for row in records_by_key(key=term)}
    if attempt is not None and attempt.idempotency_key:
        guarded = records_by_key(key=attempt.idempotency_key)
        found |= {row.id for row in guarded if row.attempt_id == attempt.id}
    return Q(id__in=found)
