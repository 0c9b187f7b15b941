"""The tenant scope. It fails closed: a query on an organization's table without a scope raises instead of returning
rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db import models

M = TypeVar("M", bound=models.Model)


class TenantScopeMissing(RuntimeError):
    """An organization's table was queried without a scope. That is a bug, and the query is refused."""


@dataclass(frozen=True, slots=True)
class TenantScope:
    """Either named organizations, or explicitly everything."""

    organization_ids: frozenset[UUID] = frozenset()
    everything: bool = False


_scope: ContextVar[TenantScope | None] = ContextVar("tenant_scope", default=None)


def current_scope() -> TenantScope:
    scope = _scope.get()
    if scope is None:
        raise TenantScopeMissing("no tenant scope: use tenant_scope(...) or every_tenant()")
    return scope


def in_scope(organization_id: UUID) -> bool:
    """For hand-written SQL, which no manager filters."""
    scope = current_scope()
    return scope.everything or organization_id in scope.organization_ids


def enter_scope(organization_ids: Iterable[UUID]) -> None:
    """For the rest of the request. TenantScopeMiddleware leaves the scope at its end."""
    _scope.set(TenantScope(frozenset(organization_ids)))


def enter_everything() -> None:
    """For an installation administrator's request in the console."""
    _scope.set(TenantScope(everything=True))


def leave_scope() -> None:
    _scope.set(None)


@contextmanager
def tenant_scope(organization_ids: Iterable[UUID]) -> Iterator[None]:
    """Queries inside see only rows of these organizations."""
    token = _scope.set(TenantScope(frozenset(organization_ids)))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def every_tenant() -> Iterator[None]:
    """For scheduled tasks, commands and set-up that act on all organizations on purpose."""
    token = _scope.set(TenantScope(everything=True))
    try:
        yield
    finally:
        _scope.reset(token)


class InTenantScope(models.Expression):
    """The condition "this row is in scope"."""

    conditional = True

    def __init__(self, path: str, *, shared: bool) -> None:
        super().__init__(output_field=models.BooleanField())
        self.column: Any = models.F(path)
        self.shared = shared

    def get_source_expressions(self) -> list[Any]:
        return [self.column]

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        (self.column,) = exprs

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        # Read when the SQL is compiled, not when the queryset is built: a queryset may be built early and kept, and
        # must then run in the scope of that later moment, or not at all.
        scope = current_scope()
        if scope.everything:
            return "TRUE", []
        sql, params = compiler.compile(self.column)
        ids = list(scope.organization_ids)
        # One organization is the usual case, and only with a plain equality does an index return rows in order.
        mine, values = (f"{sql} = %s", ids) if len(ids) == 1 else (f"{sql} = ANY(%s)", [ids])
        if self.shared:
            return f"({mine} OR {sql} IS NULL)", [*params, *values, *params]
        return mine, [*params, *values]


class TenantManager(models.Manager[M]):
    """The default manager of every table that belongs to an organization. With `shared`, rows without an organization
    are visible too."""

    def __init__(self, *, path: str = "organization_id", shared: bool = False) -> None:
        super().__init__()
        self.path = path
        self.shared = shared

    def get_queryset(self) -> models.QuerySet[M]:
        # Django creates managers of reverse relations (`review.votes`) without our arguments, so we take them from the
        # model's own manager. Otherwise such a relation would filter by a wrong column.
        own: Any = self.model._default_manager
        return super().get_queryset().filter(InTenantScope(own.path, shared=own.shared))
