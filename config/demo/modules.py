"""The demo's modules: a fraud score and payments, whose requests `make run`'s simulator answers on the streams."""

from datetime import datetime
from typing import Any

from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from workflows.modules.models import Module
from workflows.modules.services.registry import module_register

TEXT = {"type": "string", "maxLength": 64}
CENTS = {"type": "integer", "minimum": 1}


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [*properties], "properties": properties}


MODULES: dict[str, dict[str, Any]] = {
    "fraud-score": {
        "score": {
            "effect": "none",
            "send": _closed(order_ref=TEXT, amount_cents=CENTS),
            "returns": _closed(score={"type": "number", "minimum": 0, "maximum": 1}),
        }
    },
    "payments": {
        "refund": {
            "effect": "once",
            "send": _closed(order_ref=TEXT, amount_cents=CENTS, currency={"type": "string", "pattern": "^[A-Z]{3}$"}),
            "returns": _closed(receipt_ref=TEXT),
        }
    },
}


def modules_ensure(*, organization: Organization, at: datetime) -> None:
    """Needs one query if both exist."""
    known = set(Module.objects.filter(organization=organization, slug__in=MODULES).values_list("slug", flat=True))
    for slug, operations in MODULES.items():
        if slug not in known:
            module_register(
                actor=SYSTEM,
                at=at,
                organization_id=organization.id,
                slug=slug,
                terms={"transport": "stream", "operations": operations, "publishes": []},
                private_hosts=frozenset(),
            )
