"""Content-addressed snapshots: what a decision was computed from, kept once and never changed."""

import marshal
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction

from governance.canonical import canonical_sha256
from governance.models import Contract, ContractDocument, Policy, Snapshot


def snapshot_store(*, kind: str, document: dict[str, Any], at: datetime) -> str:
    """The document's hash; the row is inserted when it is new. Safe when two processes do it at once."""
    digest = canonical_sha256(document)
    Snapshot.objects.bulk_create([Snapshot(sha256=digest, kind=kind, document=document, at=at)], ignore_conflicts=True)
    return digest


_stored: set[str] = set()


def snapshot_ensure(*, sha256: str, kind: str, document: dict[str, Any], at: datetime) -> None:
    """Stored once; remembered per process, and only after the commit that stored it."""
    if sha256 not in _stored:
        row = Snapshot(sha256=sha256, kind=kind, document=document, at=at)
        Snapshot.objects.bulk_create([row], ignore_conflicts=True)
        transaction.on_commit(lambda: _stored.add(sha256))


def frame_sha256(frame: dict[str, Any]) -> str:
    """Remembered: canonical JSON takes ten times as long as comparing the frame with those of earlier decisions."""
    try:
        return _sha256_of(marshal.dumps(frame, 2))
    except ValueError:  # something that only looks like plain text
        return canonical_sha256(frame)


@lru_cache(maxsize=1024)
def _sha256_of(marshalled: bytes) -> str:
    """Equal bytes are equal content; version 2 writes the same content the same way."""
    return canonical_sha256(marshal.loads(marshalled))  # noqa: S302  # our own, from one line above


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
