"""Records violations and counts misuse. A violation is written in a transaction of its own, because the refused one is
rolled back."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import structlog
from django.db import transaction

from governance.contracts.rules.documents import area
from governance.ledger.services import actor_reference, ledger_append
from governance.people.services.accounts import service_account_suspend
from governance.throttles.services import strike
from governance.violations.errors import RuleBroken
from governance.violations.models import GovernanceViolation
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import tenant_scope

log = structlog.get_logger("holdpoint.security")
DEFAULT = area("throttles_and_misuse").default["misuse"]


def misuse_strike(*, actor: Actor, at: datetime, rule: Mapping[str, Any] | None = None) -> None:
    """Counts a refusal that only a faulty or hostile caller causes, and suspends the service account after too many.
    People are not suspended by a counter."""
    if actor.kind is not ActorKind.SERVICE or actor.id is None:
        return
    limit = dict(rule or DEFAULT)
    count = strike(subject=str(actor.id), window_seconds=limit["window_seconds"])
    # None: Valkey does not answer. Nobody is suspended on a guess; throttles deny the requests meanwhile.
    if count is None or count < limit["strikes"]:
        return
    with tenant_scope(actor.organization_ids):
        service_account_suspend(actor=SYSTEM, at=at, service_account_id=actor.id, reason_code="misuse_suspended")
    log.warning("service_account_suspended", service_account_id=str(actor.id), strikes=count)


P = ParamSpec("P")
R = TypeVar("R")


def violations_recorded(service: Callable[P, R]) -> Callable[P, R]:
    """For services that take `actor` and `at`: records what they refuse as a violation, after their own rollback."""

    @wraps(service)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return service(*args, **kwargs)
        except RuleBroken as broken:
            violation_record(actor=_actor(kwargs), at=_at(kwargs), broken=broken)
            raise

    return guarded


def violation_record(*, actor: Actor, at: datetime, broken: RuleBroken) -> None:
    """Records a refusal, once."""
    # A service records its own refusal, and the API's error handler sees the same error again.
    if broken.recorded:
        return
    broken.recorded = True
    # In the organization where it was tried, if the actor belongs there. Otherwise in the actor's own: a stranger must
    # not be able to write into another organization's record.
    tried_in = {broken.organization_id} & actor.organization_ids
    organization_id = next(iter(tried_in), None) or min(actor.organization_ids, default=None)
    with transaction.atomic():
        violation = GovernanceViolation(
            organization_id=organization_id,
            kind=broken.violation,
            actor_kind=actor.kind.value,
            actor_ref=actor_reference(actor),
            subject_type=broken.subject_type,
            subject_id=broken.subject_id,
            detail=type(broken).summary(),
            at=at,
        )
        violation.save()
        ledger_append(
            action="violation.recorded",
            organization_id=organization_id,
            subject_type=broken.subject_type or "violation",
            subject_id=broken.subject_id or violation.id or uuid7(),
            actor=actor,
            at=at,
            payload={"kind": broken.violation.value, "violation": str(violation.id)},
        )
    misuse_strike(actor=actor, at=at, rule=broken.misuse_rule)


def _actor(kwargs: dict[str, Any]) -> Actor:
    actor: Actor = kwargs["actor"]
    return actor


def _at(kwargs: dict[str, Any]) -> datetime:
    at: datetime = kwargs["at"]
    return at
