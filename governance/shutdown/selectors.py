"""Reads shutdowns, and which open contracts a shutdown would stop."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.contracts.models import Contract
from governance.contracts.states import ContractState
from governance.enforcement.sql import contracts_covered
from governance.shutdown.models import Shutdown
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.tenancy import every_tenant


def shutdown_list(*, state: str | None = None) -> QuerySet[Shutdown]:
    rows = Shutdown.objects.select_related("organization", "note").order_by("-id")
    return rows.filter(state=state) if state is not None else rows


def shutdown_get(*, shutdown_id: UUID) -> Shutdown:
    return tenant_get(Shutdown, shutdown_id)


def shutdowns_engaged() -> QuerySet[Shutdown]:
    return shutdown_list(state=ShutdownState.ENGAGED).filter(drill=False)


def shutdown_preview(*, scope: ShutdownScope, organization_id: UUID | None, target: str) -> dict[str, Any]:
    """How many open contracts it would stop, and the names of the first twenty. Without an organization it counts over
    all organizations."""
    # The preview is stored with the shutdown, and every organization may read a global one. No names then: they would
    # show what other organizations run.
    if organization_id is None:
        with every_tenant():
            return _preview(scope, None, target) | {"named": []}
    return _preview(scope, organization_id, target)


def _preview(scope: ShutdownScope, organization_id: UUID | None, target: str) -> dict[str, Any]:
    rows = Contract.objects.filter(contracts_covered(scope=scope, target=target), state=ContractState.OPEN)
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    named = rows.order_by("slug", "version").values_list("slug", "version")[:20]
    return {
        "contracts": rows.count(),
        "organizations": Organization.objects.filter(Q(id__in=rows.values("organization_id"))).count(),
        "named": [f"{slug}/{version}" for slug, version in named],
    }
