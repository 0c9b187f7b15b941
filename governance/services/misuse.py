"""Strikes against a service account, counted in Valkey; enough of them suspend it until an operator reinstates it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from governance.documents import area
from governance.services.service_account import service_account_suspend
from governance.throttling import strike
from reasoncodes.actors import SYSTEM, Actor, ActorKind
from reasoncodes.tenancy import tenant_scope

log = structlog.get_logger("holdpoint.security")
DEFAULT = area("throttles_and_misuse").default["misuse"]


def misuse_strike(*, actor: Actor, at: datetime, rule: Mapping[str, Any] | None = None) -> None:
    """One more refusal that only a mistaken or hostile caller causes. People are not suspended by a counter."""
    if actor.kind is not ActorKind.SERVICE or actor.id is None:
        return
    limit = dict(rule or DEFAULT)
    count = strike(subject=str(actor.id), window_seconds=limit["window_seconds"])
    if count is None or count < limit["strikes"]:
        return
    with tenant_scope(actor.organization_ids):
        service_account_suspend(actor=SYSTEM, at=at, service_account_id=actor.id, reason_code="misuse_suspended")
    log.warning("service_account_suspended", service_account_id=str(actor.id), strikes=count)
