"""Finding by what people have in hand: an id, a trace, a key. Exact, each way by an index, each answer bounded."""

import re

from django.db.models import Q

from attempts.models import Attempt, IdempotencyRecord
from governance.models import Contract, ServiceAccount
from governance.selectors.lists import newest, uuid_or_none
from governance.selectors.search import by_organization

FOUND = 20
SCOPES = 5_000
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
    scopes = ["tenant"]
    scopes += [f"contract:{slug}" for slug in Contract.objects.order_by().values_list("slug", flat=True)[:SCOPES]]
    scopes += [f"caller:{id_}" for id_ in ServiceAccount.objects.order_by().values_list("id", flat=True)[:SCOPES]]
    rows = IdempotencyRecord.objects.filter(by_organization(), scope__in=set(scopes), key=key).defer("body", "parts")
    return sorted(rows.select_related("organization")[:FOUND], key=lambda row: row.id, reverse=True)


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
