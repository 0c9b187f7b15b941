"""A contract, a policy, a region, a request that is allowed under them, and ways to spoil one part of it."""

import pickle
from copy import deepcopy
from functools import cache
from typing import Any

from governance.contracts.rules.documents import default_documents
from governance.enforcement.rules import Decision, Environment, EvaluatorResult, decision_document
from governance.ledger.rules.entry import canonical_bytes, canonical_sha256
from governance.regions.rules import load_profiles, merge, tighten

ORGANIZATION = "0197a3c2-6f00-7a11-8b22-3c4d5e6f7081"
REMOVE = ...
SNAPSHOTS = ("contract", "policy", "region")
RULES: list[dict[str, Any]] = [
    {"id": "closing", "when": 'action.operation == "ticket.close"', "verdict": "deny", "reason_code": "too_final"},
    {
        "id": "urgent",
        "when": "coalesce(metadata.priority, 0) >= 5",
        "verdict": "needs_approval",
        "tier": "sa_qa",
        "approvals_required": 2,
        "expires_in_seconds": 3600,
    },
    {"id": "bad", "when": "metadata.gone > 1 || true", "verdict": "deny"},
    {"id": "rest", "when": "true", "verdict": "allow"},
]


def contract() -> dict[str, Any]:
    documents = default_documents()
    documents["metadata_boundary"]["schema"]["properties"] = {
        "ticket": {"type": "string", "maxLength": 64},
        "priority": {"type": "number"},
        "gone": {"type": "integer"},
        "labels": {"type": "array", "items": {"type": "string", "maxLength": 20}},
    }
    documents["regional_compliance"]["regions"] = ["US", "EU", "AE"]
    documents["attempt_identity_envelope"]["runtime_modes"] = ["active", "shadow"]
    return {
        "format": "holdpoint-contract-v1",
        "id": "contract-1",
        "organization_id": ORGANIZATION,
        "slug": "ticket-update",
        "version": "3",
        "effect": "idempotent",
        "risk_tier": "medium",
        "adapter": "http",
        "review_owner": "trust-operations",
        "policy_slug": "ticket-policy",
        "documents": documents,
    }


def policy(rules: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    kept = [rule for rule in RULES if rule["id"] != "bad"] if rules is None else rules
    return {"format": "holdpoint-policy-v1", "id": "policy-1", "slug": "ticket-policy", "version": 7, "rules": kept}


def region(*codes: str) -> dict[str, Any]:
    profile = merge(load_profiles().select(codes or ("US",)))
    return tighten(profile, stance=contract()["documents"]["regional_compliance"]).document()


def facts() -> dict[str, Any]:
    return {
        "format": "holdpoint-environment-v1",
        "at": "2026-11-16T09:30:00Z",
        "contract_state": "open",
        "contract_sha256": None,
        "policy_sha256": None,
        "region_sha256": None,
        "deployment_region": "US",
        "organization": {"id": ORGANIZATION, "status": "active", "regions": ["US"]},
        "caller": {"kind": "service", "id": "svc-1", "status": "active", "scopes": ["attempts:create"]},
        "shutdowns": [],
        "throttle": {"status": "ok", "exceeded": None, "retry_after": 0},
        "concurrency": {"status": "ok", "busy": None, "when_busy": "deny", "retry_after": 0},
        "failures": {},
    }


def request() -> dict[str, Any]:
    return {
        "format": "holdpoint-request-v1",
        "envelope": {
            "workflow_slug": "ticket-update",
            "contract_version": "3",
            "request_trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "idempotency_key": "tkt-42-update",
            "tenant_ref": f"org:{ORGANIZATION}",
            "caller_ref": "service:svc-1",
            "patient_context_ref": "ctx-42",
            "review_owner": "trust-operations",
            "runtime_mode": "active",
            "audit_event_link": "ledger:entry-42",
        },
        "action": {
            "connector": "http",
            "operation": "ticket.update",
            "target_ref": "ticket/42",
            "risk_tier": "low",
            "payload_ref": "store/42",
            "payload_sha256": "ab" * 32,
            "fields": ["status", "priority"],
        },
        "metadata": {"ticket": "TKT-42", "priority": 2},
    }


def changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A deep copy with values at dotted paths replaced, or taken out with REMOVE."""
    return _change(deepcopy(value), changes)


def _change(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    for path, new in changes.items():
        *way, last = path.split(".")
        place = value
        for step in way:
            place = place[step]
        if new is REMOVE:
            del place[last]
        else:
            place[last] = deepcopy(new)
    return value


@cache
def _unchanged() -> tuple[bytes, dict[str, str]]:
    """The parts, pickled, because properties read thousands of them and a deep copy takes ten times as long; and the
    hashes of the snapshots."""
    parts = {"facts": facts(), "contract": contract(), "policy": policy(), "region": region()}
    return pickle.dumps(parts), {name: canonical_sha256(parts[name]) for name in SNAPSHOTS}


def environment(changes: dict[str, Any] | None = None) -> Environment:
    """Paths begin with facts, contract, policy or region; the hashes of the snapshots are put in at the end."""
    pickled, hashes = _unchanged()
    parts = _change(pickle.loads(pickled), changes or {})  # noqa: S301
    touched = {path.partition(".")[0] for path in changes or {}}
    for name in SNAPSHOTS:
        if parts[name] is not None and parts["facts"][f"{name}_sha256"] is None:
            digest = canonical_sha256(parts[name]) if name in touched else hashes[name]
            parts["facts"][f"{name}_sha256"] = digest
    return Environment(**parts)


def result_of(decision: Decision, evaluator: str) -> EvaluatorResult:
    return next(result for result in decision.results if result.evaluator == evaluator)


def as_bytes(decision: Decision) -> bytes:
    return canonical_bytes(decision_document(decision))
