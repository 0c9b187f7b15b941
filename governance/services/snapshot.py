"""Content-addressed snapshots: what a decision was computed from, kept once and never changed."""

from datetime import datetime
from typing import Any

from governance.canonical import canonical_sha256
from governance.models import Contract, ContractDocument, Policy, Snapshot


def snapshot_store(*, kind: str, document: dict[str, Any], at: datetime) -> str:
    """The document's hash; the row is inserted when it is new. Safe when two processes do it at once."""
    digest = canonical_sha256(document)
    Snapshot.objects.bulk_create([Snapshot(sha256=digest, kind=kind, document=document, at=at)], ignore_conflicts=True)
    return digest


def contract_snapshot(*, contract: Contract) -> dict[str, Any]:
    """Everything of a contract that a decision may depend on."""
    documents = ContractDocument.objects.filter(contract=contract).order_by("area")
    return {
        "format": "holdpoint-contract-v1",
        "id": str(contract.id),
        "organization_id": str(contract.organization_id),
        "slug": contract.slug,
        "version": contract.version,
        "effect": contract.effect,
        "risk_tier": contract.risk_tier,
        "adapter": contract.adapter,
        "review_owner": contract.review_owner,
        "policy_slug": contract.policy_slug,
        "documents": {row.area: row.document for row in documents},
    }


EXPIRY_DEFAULT = {"expires_in_seconds": 86400}
COUNT_DEFAULT = {"approvals_required": 1}


def normalized_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule that holds says how many must release it and until when; unsaid, one person (of each tier) in a day."""
    if rule.get("verdict") != "needs_approval":
        return rule
    if "buckets" in rule:
        return EXPIRY_DEFAULT | rule | {"buckets": [COUNT_DEFAULT | bucket for bucket in rule["buckets"]]}
    return COUNT_DEFAULT | EXPIRY_DEFAULT | rule


def policy_snapshot(*, policy: Policy) -> dict[str, Any]:
    return {
        "format": "holdpoint-policy-v1",
        "id": str(policy.id),
        "slug": policy.slug,
        "version": policy.version,
        "rules": [normalized_rule(rule) for rule in policy.rules],
    }
