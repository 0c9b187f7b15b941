"""A payments module and a fraud score, as two people registered them."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from governance.authority.services.changes import authority_act, authority_confirm
from governance.ledger.models import LedgerEntry
from governance.people.models import ApiKey, ServiceAccount
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast
from workflows.modules.models import Module
from workflows.modules.services.registry import IssuedModule, module_account_bind

URL = "/api/v1/modules"


def closed(**properties: Any) -> dict[str, Any]:
    required = sorted(properties)
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


TEXT = {"type": "string", "maxLength": 64}
REFUND = {
    "effect": "once",
    "path": "/refunds",
    "send": closed(order_ref=TEXT, amount_cents={"type": "integer", "minimum": 1}, currency=TEXT),
    "returns": closed(receipt_ref=TEXT),
}
SCORE = {
    "effect": "none",
    "send": closed(order_ref=TEXT, amount_cents={"type": "integer", "minimum": 1}),
    "returns": closed(score={"type": "number", "minimum": 0, "maximum": 1}),
}
PAYMENTS: dict[str, Any] = {
    "slug": "payments",
    "transport": "stream",
    "operations": {"refund": REFUND},
    "publishes": [],
}
FRAUD: dict[str, Any] = {"slug": "fraud-score", "transport": "stream", "operations": {"score": SCORE}, "publishes": []}


def decide(cast: Cast, kind: str, subject: str, details: Mapping[str, Any]) -> Any:
    """One operator proposes, another one confirms. Returns what came into force."""
    where = [cast.organization]
    with every_tenant():
        proposed = authority_act(
            actor=cast.actor(cast.operator, where),
            at=timezone.now(),
            organization=cast.organization,
            kind=kind,
            subject=subject,
            details=details,
        )
        if proposed.applied:
            return proposed.applied.made
        now = timezone.now()
        second = cast.actor(cast.second_operator, where)
        done = authority_confirm(actor=second, at=now, change_id=proposed.change.id, authenticated_at=now)
    assert done.applied
    return done.applied.made


def registered(cast: Cast, terms: Mapping[str, Any] = PAYMENTS, **changes: Any) -> IssuedModule:
    wanted = {**terms, **changes}
    made: IssuedModule = decide(cast, "module.register", wanted.pop("slug"), wanted)
    return made


def bound(cast: Cast, module: Module, secret: str) -> ServiceAccount:
    """The account of this key, bound to the module."""
    with every_tenant():
        account = ApiKey.objects.get(prefix=secret.split("_")[1]).service_account
        actor = cast.actor(cast.operator, [cast.organization])
        return module_account_bind(actor=actor, at=timezone.now(), module_id=module.id, account=account.slug)


def fresh(module: Module) -> Module:
    with every_tenant():
        return Module.objects.get(id=module.id)


def acts_of(subject_id: Any) -> list[str]:
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id=subject_id).order_by("id")
        return list(rows.values_list("action", flat=True))


def violations() -> list[str]:
    with every_tenant():
        return list(GovernanceViolation.objects.order_by("id").values_list("kind", flat=True))
