"""Decisions as plain JSON, and the hashes of what they were computed from."""

from collections.abc import Iterable, Mapping
from typing import Any

from governance.enforcement.rules.names import DECISION_FORMAT
from governance.enforcement.rules.verdict import Approval, ApprovalBucket, Decision, EvaluatorResult, Verdict
from governance.ledger.rules.entry import canonical_sha256


def decision_document(decision: Decision) -> dict[str, Any]:
    """The whole decision as JSON. Two decisions agree if their documents have the same canonical bytes."""
    return {
        "format": DECISION_FORMAT,
        "verdict": decision.verdict.value,
        "reason_code": decision.reason_code,
        "results": [_result_document(result) for result in decision.results],
        "approval": approval_document(decision.approval),
        "rule_id": decision.rule_id,
        "retry_after": decision.retry_after,
        "failures": dict(decision.failures),
    }


def approval_document(approval: Approval | None) -> dict[str, Any] | None:
    """The approval of a decision as JSON."""
    # `buckets` is left out when there are none: decisions that were stored before buckets existed must stay equal.
    if approval is None:
        return None
    document: dict[str, Any] = {
        "tier": approval.tier,
        "approvals_required": approval.approvals_required,
        "expires_in_seconds": approval.expires_in_seconds,
    }
    return document | ({"buckets": buckets_document(approval.buckets)} if approval.buckets else {})


def buckets_document(buckets: Iterable[ApprovalBucket]) -> list[dict[str, Any]]:
    return [{"tier": bucket.tier, "approvals_required": bucket.approvals_required} for bucket in buckets]


def results_from_document(results: Iterable[Mapping[str, Any]]) -> tuple[EvaluatorResult, ...]:
    return tuple(
        EvaluatorResult(
            evaluator=result["evaluator"],
            verdict=Verdict(result["verdict"]),
            reason_code=result["reason_code"],
            inputs=dict(result["inputs"]),
        )
        for result in results
    )


def request_sha256(request: Mapping[str, Any]) -> str:
    """The hash of a request as it is stored. Raises for what is not canonical JSON; `storable_request` never returns
    such a value."""
    return canonical_sha256(request)


def environment_sha256(facts: Mapping[str, Any]) -> str:
    """The hash of the facts. It covers the snapshots too, because the facts name them by hash."""
    return canonical_sha256(facts)


def _result_document(result: EvaluatorResult) -> dict[str, Any]:
    return {
        "evaluator": result.evaluator,
        "verdict": result.verdict.value,
        "reason_code": result.reason_code,
        "inputs": dict(result.inputs),
    }
