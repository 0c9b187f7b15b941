"""The answer to an intake: an attempt, a hold, or a refusal. Built before the commit, because the key stores it."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from attempts.errors import AttemptDenied, RateLimited, ThrottleUnavailable
from attempts.models import Attempt, Review
from attempts.services.intake_rows import Intake
from governance.errors import MetadataBoundary
from governance.models import EnforcementDecision
from governance.services.decision import Computed
from governance.throttling import ThrottleAnswer
from reasoncodes.errors import DomainError, FieldError
from reasoncodes.problem import problem_document

THROTTLED = frozenset({"rate_limited", "concurrency_limit", "misuse_suspended"})


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, exact body and headers; `is_problem` says which media type."""

    status: int
    body: str
    headers: dict[str, str]
    is_problem: bool = False
    attempt_id: UUID | None = None


def answer_build(
    intake: Intake,
    attempt: Attempt,
    decision: EnforcementDecision,
    review: Review | None,
    throttle: ThrottleAnswer,
    computed: Computed,
) -> Answer:
    if decision.verdict == "deny":
        refusal = _refusal(attempt, decision, computed)
        document = problem_document(refusal, base_url=intake.base_url, request_id=intake.trace.request_id)
        return Answer(
            refusal.status,
            json.dumps(document),
            refusal.headers | throttle.headers,
            is_problem=True,
            attempt_id=attempt.id,
        )
    headers = throttle.headers | {"Location": f"/api/v1/attempts/{attempt.id}", "Attempt-State": attempt.state}
    body = attempt_json(attempt, review)
    if review is not None:
        headers["Retry-After"] = "30"
    return Answer(202 if review else 201, json.dumps(body), headers, attempt_id=attempt.id)


def attempt_json(attempt: Attempt, review: Review | None) -> dict[str, Any]:
    """The answer to whoever asked. Stored with the key and given again byte by byte."""
    return {
        "id": str(attempt.id),
        "state": attempt.state,
        "reason_code": attempt.reason_code or None,
        "workflow_slug": attempt.workflow_slug,
        "contract_version": attempt.contract_version,
        "runtime_mode": attempt.runtime_mode,
        "decision_id": str(attempt.decision_id),
        "action_digest": attempt.action_digest,
        "created_at": attempt.created_at.isoformat(),
        "review": {
            "id": str(review.id),
            "tier": review.tier,
            "approvals_required": review.approvals_required,
            "expires_at": review.expires_at.isoformat(),
            **({"buckets": review.buckets} if review.buckets else {}),
        }
        if review and review.expires_at
        else None,
    }


def _refusal(attempt: Attempt, decision: EnforcementDecision, computed: Computed) -> DomainError:
    code = decision.reason_code
    facts = {"attempt_id": str(attempt.id), "decision_id": str(decision.id)}
    wait = {"Retry-After": str(computed.decision.retry_after or 5)}
    if code == "metadata_boundary":
        withheld = computed.request.get("withheld", [])
        errors = [
            FieldError(row["pointer"], "holds something outside the boundary", rule=row["rule"]) for row in withheld
        ]
        return MetadataBoundary(errors=errors, extensions=facts)
    if code == "throttle_unavailable":
        return ThrottleUnavailable(headers=wait, extensions=facts)
    if code in THROTTLED:
        return RateLimited(reason_code=code, headers=wait, extensions=facts)
    return AttemptDenied(reason_code=code, extensions=facts)
