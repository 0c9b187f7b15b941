"""Reads modules, their versions and secrets, and what a definition or a key may use of them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from governance.people.models import ServiceAccount
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.tenancy import every_tenant
from workflows.kinds.call_events import ANSWERS, call_event_name
from workflows.modules.models import Module, ModuleSecret, ModuleVersion
from workflows.modules.rules.fit import OfferedModule


def module_list(*, active: bool | None = None, transport: str | None = None) -> "QuerySet[Module]":
    rows = Module.objects.order_by("slug", "id")
    if transport is not None:
        rows = rows.filter(versions__number=F("version"), versions__transport=transport)
    return rows if active is None else rows.filter(active=active)


def module_get(*, module_id: UUID, lock: bool = False) -> Module:
    return tenant_get(Module, module_id, lock=lock)


def module_named(*, organization_id: UUID, slug: str) -> Module | None:
    return Module.objects.filter(organization_id=organization_id, slug=slug).first()


def module_terms(*, module: Module, number: int | None = None) -> ModuleVersion:
    """The newest version, or the one with this number."""
    return ModuleVersion.objects.get(module=module, number=number or module.version)


def module_terms_of(*, modules: "list[Module]") -> dict[UUID, ModuleVersion]:
    """The newest version of each, in one query."""
    rows = ModuleVersion.objects.filter(module__in=modules, number=F("module__version"))
    return {row.module_id: row for row in rows}


def module_versions(*, module: Module) -> list[ModuleVersion]:
    return list(ModuleVersion.objects.filter(module=module).order_by("-number")[:100])


def modules_offered(*, organization_id: UUID | None) -> Mapping[str, OfferedModule]:
    """The active modules of the organization, by slug, as a definition sees them."""
    if organization_id is None:
        return {}
    rows = ModuleVersion.objects.filter(
        module__organization_id=organization_id, module__active=True, number=F("module__version")
    )
    found: list[tuple[str, int, str, dict[str, Any]]] = list(
        rows.order_by("module__slug").values_list("module__slug", "number", "transport", "operations")
    )
    return {slug: OfferedModule(slug, number, transport, ops) for slug, number, transport, ops in found}


def module_publishes(*, organization_id: UUID, slug: str) -> frozenset[str] | None:
    """The event types that a module declared; None if it does not exist or is disabled."""
    rows = ModuleVersion.objects.filter(
        module__organization_id=organization_id, module__slug=slug, module__active=True, number=F("module__version")
    )
    found = rows.values_list("publishes", flat=True).first()
    return None if found is None else frozenset(found)


def module_answer_types() -> list[str]:
    """The event types with which modules of all organizations answer, of every version: a run may wait for an old one.
    Also of modules that are called over http, because an accepted call is answered by an event."""
    with every_tenant():
        rows = list(ModuleVersion.objects.values_list("module__slug", "operations"))
    asked = {(slug, name) for slug, operations in rows for name in operations}
    return sorted(call_event_name(slug, name, word) for slug, name in asked for word in ANSWERS)


def module_salts(*, module_id: UUID, at: datetime) -> list[bytes]:
    """Salts of the secrets that sign now, the newest first."""
    rows = module_secrets_live(module_id=module_id, at=at)
    return [bytes(row.salt) for row in rows]


def module_secrets_live(*, module_id: UUID, at: datetime) -> list[ModuleSecret]:
    rows = ModuleSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), module_id=module_id)
    return list(rows.order_by("-id"))


def module_accounts(*, module: Module) -> list[ServiceAccount]:
    """The service accounts that are bound to it."""
    rows = ServiceAccount.objects.filter(organization_id=module.organization_id, module=module.slug)
    return list(rows.order_by("slug"))
