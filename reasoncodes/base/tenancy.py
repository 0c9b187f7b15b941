"""The tenant scope. It fails closed: a query on a tenant's table without a scope raises, it does not return rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db import models

M = TypeVar("M", bound=models.Model)


class TenantScopeMissing(RuntimeError):
    """A tenant's table was queried outside any scope: a bug, and refused rather than answered."""


@dataclass(frozen=True, slots=True)
class TenantScope:
    """Either named organizations, or everything, said explicitly."""

    organization_ids: frozenset[UUID] = frozenset()
    everything: bool = False


_scope: ContextVar[TenantScope | None] = ContextVar("tenant_scope", default=None)


def current_scope() -> TenantScope:
    scope = _scope.get()
    if scope is None:
        raise TenantScopeMissing("no tenant scope: use tenant_scope(...) or every_tenant()")
    return scope


def in_scope(organization_id: UUID) -> bool:
    """For SQL of our own, which no manager guards."""
    scope = current_scope()
    return scope.everything or organization_id in scope.organization_ids


def enter_scope(organization_ids: Iterable[UUID]) -> None:
    """For the request's lifetime; the middleware that wraps the request leaves it again."""
    _scope.set(TenantScope(frozenset(organization_ids)))


def enter_everything() -> None:
    """For an installation administrator's request in the console."""
    _scope.set(TenantScope(everything=True))


def leave_scope() -> None:
    _scope.set(None)


@contextmanager
def tenant_scope(organization_ids: Iterable[UUID]) -> Iterator[None]:
    """Queries inside see only these organizations' rows."""
    token = _scope.set(TenantScope(frozenset(organization_ids)))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def every_tenant() -> Iterator[None]:
    """For ticks, commands and set-up that act on all organizations on purpose."""
    token = _scope.set(TenantScope(everything=True))
    try:
        yield
    finally:
        _scope.reset(token)


class InTenantScope(models.Expression):
    """The condition "this row is in scope", looked up when the SQL is compiled: a queryset may be built early and kept,
    but it runs only inside a scope, and always inside the one that is current then."""

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
        scope = current_scope()
        if scope.everything:
            return "TRUE", []
        sql, params = compiler.compile(self.column)
        ids = list(scope.organization_ids)
        # One organization is the usual case, and an index gives rows in order only for a plain equality.
        mine, values = (f"{sql} = %s", ids) if len(ids) == 1 else (f"{sql} = ANY(%s)", [ids])
        if self.shared:
            return f"({mine} OR {sql} IS NULL)", [*params, *values, *params]
        return mine, [*params, *values]


class TenantManager(models.Manager[M]):
    """The default manager of every table that belongs to an organization. `shared` adds rows that belong to none."""

    def __init__(self, *, path: str = "organization_id", shared: bool = False) -> None:
        super().__init__()
        self.path = path
        self.shared = shared

    def get_queryset(self) -> models.QuerySet[M]:
        # Django makes the managers of reverse relations (`review.votes`) without arguments; the model's own one knows.
        own: Any = self.model._default_manager
        return super().get_queryset().filter(InTenantScope(own.path, shared=own.shared))
