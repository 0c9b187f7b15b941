"""Reading for the console's lists and search: every query costs the same with a thousand rows and with a million."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Model, Q, QuerySet

from governance.console.models import SavedFilter
from governance.console.selectors.pages import organization_ids
from governance.contracts.models import Contract
from governance.people.models import ApiKey, ServiceAccount
from governance.policies.models import Policy
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import TenantScope, current_scope, every_tenant, tenant_scope

M = TypeVar("M", bound=Model)
T = TypeVar("T")
# Filters without an index look at so many rows; see DECISIONS, "A filter without an index".
NEWEST = 10_000
# An export holds one batch in memory, and each batch is one short query.
BATCH = 1_000
# Search term, page, order and the admin's own flags. A search term may be about a person, so it is never stored.
NOT_KEPT = {"q", "p", "all", "o", "e"}


def newest(rows: QuerySet[M]) -> QuerySet[M]:
    """Only the newest rows, for a filter without an index on a table that grows with every request."""
    # Two queries instead of a subquery: the planner knows how many rows follow an id, but not how many a subquery
    # finds, and would scan the table.
    before = rows.order_by("-id").values_list("id", flat=True)[NEWEST : NEWEST + 1].first()
    return rows if before is None else rows.filter(id__gt=before)


def counted_by(rows: QuerySet[M], name: str, *, limit: int = NEWEST) -> list[tuple[str, int]]:
    """How many of the newest rows have which value, most frequent first."""
    try:
        # The database counts, so that only the counts are transferred. The ORM cannot limit before it groups.
        sql, params = rows.order_by("-id").values_list(name)[:limit].query.sql_with_params()
    except EmptyResultSet:  # the scope has no organization
        return []
    with connection.cursor() as cursor:
        counting = f"SELECT value, count(*) FROM ({sql}) AS found (value) GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608
        cursor.execute(counting, params)
        return [(str(value), int(count)) for value, count in cursor.fetchall()]


def uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def by_id(term: str, *names: str) -> Q | None:
    """Rows that have this id under one of the names, each found by its index. None if the term is not an id."""
    wanted = uuid_or_none(term)
    if wanted is None:
        return None
    found = Q()
    for name in names or ("id",):
        found |= Q(**{name: wanted})
    return found


def in_batches(rows: QuerySet[M], *, limit: int, read: Callable[[M], T]) -> Iterator[list[T]]:
    """What `read` returns for each row, newest first, a thousand rows at a time."""
    # Batches are read after the request has ended and left its scope, so the scope is passed along.
    return _batches(rows, limit, read, current_scope())


def _batches(rows: QuerySet[M], limit: int, read: Callable[[M], T], scope: TenantScope) -> Iterator[list[T]]:
    ordered, seen, last = rows.order_by("-id"), 0, None
    while seen < limit:
        # By the last id and not by OFFSET, which would read all earlier rows again for every batch.
        after: Any = ordered if last is None else ordered.filter(id__lt=last)
        # Around `read` too: columns may query.
        with every_tenant() if scope.everything else tenant_scope(scope.organization_ids):
            batch = list(after[: min(BATCH, limit - seen)])
            made = [read(row) for row in batch]
        if not batch:
            return
        seen, last = seen + len(batch), batch[-1].pk
        yield made


def saved_filters(*, user_id: UUID, page: str) -> list[SavedFilter]:
    return list(SavedFilter.objects.filter(user_id=user_id, page=page))


def filter_query(query: str) -> str:
    """The part of an address that filters: no page number, no order, no search term."""
    return urlencode(
        sorted(
            (name, value)
            for name, value in parse_qsl(query)
            if name not in NOT_KEPT and value and not name.startswith("_")
        )
    )


# Bounds each query of a search: it shows a choice of hits, not a list.
FOUND = 20


def ids_in_scope() -> frozenset[UUID]:
    """The ids of all organizations in the current scope."""
    scope = current_scope()
    return organization_ids() if scope.everything else scope.organization_ids


def by_organization() -> Q:
    """Names the organizations where the scope is "everything": an index that begins with the organization is not used
    without them."""
    return Q(organization_id__in=ids_in_scope()) if current_scope().everything else Q()


def contracts_by_slug(*, slug: str) -> QuerySet[Contract]:
    rows = Contract.objects.filter(by_organization(), slug=slug).select_related("organization")
    return rows.order_by("-version")[:FOUND]


def policies_by_slug(*, slug: str) -> QuerySet[Policy]:
    rows = Policy.objects.filter(by_organization(), slug=slug).select_related("organization")
    return rows.order_by("-version")[:FOUND]


def accounts_by_slug(*, slug: str) -> QuerySet[ServiceAccount]:
    return ServiceAccount.objects.filter(by_organization(), slug=slug).select_related("organization")[:FOUND]


def organizations_by_slug(*, slug: str) -> QuerySet[Organization]:
    return Organization.objects.filter(slug=slug)[:FOUND]


def keys_by_prefix(*, prefix: str) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(prefix=prefix).select_related("service_account__organization")[:FOUND]
