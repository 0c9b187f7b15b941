"""Builds the rows of a decided request and its exact answer, in memory. Nothing is read or written here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from attempts.intake.errors import AttemptDenied, RateLimited, ThrottleUnavailable
from attempts.intake.models import IdempotencyRecord
from attempts.intake.rules import action_digest
from attempts.intake.services.door import CheckedIntake, Intake, KeyUse
from attempts.intake.services.repeats import Repeated
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.lifecycle.services.transition import entry_build, transition_build
from attempts.lifecycle.sql import ALLOWED_FORM
from attempts.lifecycle.states import AttemptState, RuntimeMode
from attempts.reviews.models import Review
from governance.boundary.errors import MetadataBoundary
from governance.boundary.rules import facts_stated
from governance.contracts.models import Contract
from governance.contracts.states import RiskTier
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import Computed
from governance.ledger.models import LedgerEntry
from governance.sql.statements import new_row
from governance.throttles.services import SHARED, ThrottleAnswer
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, problem_document
from reasoncodes.base.ids import uuid7

# Refusals that mean "not now" or "not in this form". If they were recorded with the key, a retry that `Retry-After`
# invites would get the old refusal for as long as the key lives.
KEEPS_KEY_FREE = frozenset(
    {
        "rate_limited",
        "concurrency_limit",
        "misuse_suspended",
        "throttle_unavailable",
        "metadata_boundary",
        "enforcement_exception",
    }
)
SHORTEST_WAIT = 5
VERB_OF = {"allow": "approve", "needs_approval": "hold", "deny": "deny"}
RISK_RANK = {tier.value: rank for rank, tier in enumerate(RiskTier)}
THROTTLED = frozenset({"rate_limited", "concurrency_limit", "misuse_suspended"})


@dataclass(frozen=True, slots=True)
class IntakeAnswer:
    """Status, exact body and headers. `is_problem`: the body is an RFC 9457 problem."""

    status: int
    body: str
    headers: dict[str, str]
    is_problem: bool = False
    attempt_id: UUID | None = None


AUDIT_EVENT_LINK = "/api/v1/ledger/entries/{entry_id}"


def request_build(intake: Intake, key: str, entry_id: UUID) -> dict[str, Any]:
    """The canonical request that enforcement evaluates: ten envelope fields, the action, the metadata. `entry_id`: the
    ledger entry that will tell of it."""
    contract, body = intake.facts.contract, intake.body
    envelope = {
        "workflow_slug": contract.slug,
        "contract_version": contract.version,
        "request_trace_id": intake.trace.trace_id,
        "idempotency_key": key or None,
        "tenant_ref": str(contract.organization_id),
        "caller_ref": str(intake.credential.actor.id),
        "patient_context_ref": body.get("patient_context_ref"),
        "review_owner": contract.review_owner,
        "runtime_mode": body.get("runtime_mode", RuntimeMode.ACTIVE.value),
        "audit_event_link": AUDIT_EVENT_LINK.format(entry_id=entry_id),
    }
    return {
        "format": "holdpoint-request-v1",
        "envelope": envelope,
        "action": {"connector": contract.adapter} | body["action"] | {"risk_tier": _risk(contract, body["action"])},
        "metadata": body.get("metadata", {}),
    }


def _risk(contract: Contract, action: dict[str, Any]) -> str:
    """The declared risk tier, at least the contract's: a caller cannot declare an action harmless that its owners
    judged otherwise."""
    # Raised, not refused: a policy rule for low risk then does not match, and the action waits for a person.
    declared: str = action["risk_tier"]
    return max(declared, contract.risk_tier, key=RISK_RANK.__getitem__)


def attempt_build(
    intake: Intake, key: str, attempt_id: UUID, computed: Computed, decision: EnforcementDecision
) -> Attempt:
    """Builds the attempt from the request as stored, in which values that the boundary refused are left out."""
    # `new_row` instead of the constructor: `Model.__init__` sets and checks every field, for each row of each request.
    contract, request = intake.facts.contract, computed.request
    envelope, action, metadata = request["envelope"], request["action"], request.get("metadata", {})
    return new_row(
        Attempt,
        id=attempt_id,
        organization_id=contract.organization_id,
        contract_id=contract.id,
        decision_id=decision.id,
        caller_id=intake.credential.key.service_account_id,
        workflow_slug=contract.slug,
        contract_version=contract.version,
        request_trace_id=intake.trace.trace_id,
        idempotency_key=envelope.get("idempotency_key") or "",
        patient_context_ref=envelope.get("patient_context_ref") or "",
        review_owner=contract.review_owner,
        runtime_mode=envelope["runtime_mode"],
        connector=action.get("connector", ""),
        operation=action.get("operation", ""),
        target_ref=action.get("target_ref") or "",
        effect=contract.effect,
        risk_tier=action["risk_tier"],
        payload_ref=action.get("payload_ref") or "",
        payload_sha256=action.get("payload_sha256") or "",
        fields=action.get("fields", []),
        action_digest=action_digest(action, facts=facts_stated(decision.facts_declared, metadata)),
        metadata=metadata,
        retry_of_id=intake.retry_of,
        compensates_id=intake.compensates,
        origin_step=intake.origin_step,
        created_at=intake.at,
        retention_until=computed.retention_until(intake.at),
    )


def moves_build(
    attempt: Attempt, decision: EnforcementDecision, *, actor: Actor, at: datetime, entry_id: UUID
) -> tuple[list[AttemptTransition], list[LedgerEntry]]:
    """Moves the attempt received → deduplicated → decided state, and builds the transition and ledger rows."""
    entries = [entry_build(attempt, "attempt.received", actor=actor, at=at, payload={"digest": attempt.action_digest})]
    # The entry that joins these moves has the id of the first, which the request already names.
    entries[0].id = entry_id
    kwargs = {} if decision.verdict == "allow" else {"reason_code": decision.reason_code}
    decided = {
        "decision": str(decision.id),
        "rule": decision.rule_id,
        "request_sha256": decision.request_sha256,
        "environment_sha256": decision.environment_sha256,
    }
    rows = []
    for verb, payload, extra in (("deduplicate", {}, {}), (VERB_OF[decision.verdict], decided, kwargs)):
        row, entry = transition_build(attempt, verb, actor=actor, at=at, payload=payload, **extra)
        rows.append(row)
        entries.append(entry)
    return rows, entries


def key_record_build(
    asked: CheckedIntake, attempt: Attempt, answer: IntakeAnswer, use: KeyUse
) -> IdempotencyRecord | None:
    """The record of the key with this answer; None if the answer is temporary and leaves the key free."""
    intake = asked.intake
    if not asked.is_deduplicated or attempt.reason_code in KEEPS_KEY_FREE:
        return None
    return new_row(
        IdempotencyRecord,
        id=uuid7(),
        organization_id=attempt.organization_id,
        scope=asked.scope,
        key=asked.key,
        fingerprint=asked.fingerprint.value,
        parts=asked.fingerprint.short,
        attempt_id=attempt.id,
        status=answer.status,
        # A step gets its attempt row as the answer, never an HTTP body, so none is stored.
        body=answer_kept(attempt, answer.body) if intake.origin_step is None else "",
        first_used_at=intake.at,
        expires_at=intake.at + timedelta(seconds=asked.key_policy["ttl_seconds"]),
        generation=use.next_generation,
    )


def answer_build(
    asked: CheckedIntake,
    attempt: Attempt,
    decision: EnforcementDecision,
    review: Review | None,
    throttle: ThrottleAnswer,
    computed: Computed,
) -> IntakeAnswer:
    intake = asked.intake
    if decision.verdict == "deny":
        refusal = _refusal(decision.reason_code, {"attempt_id": attempt.id, "decision_id": decision.id}, computed)
        return _refused(intake, refusal, throttle, attempt.id)
    headers = throttle.headers | {"Location": f"/api/v1/attempts/{attempt.id}", "Attempt-State": attempt.state}
    body = _attempt_json(attempt, review)
    if review is not None:
        headers["Retry-After"] = str(asked.documents["retry_and_replay"]["retry_after_seconds"])
    return IntakeAnswer(202 if review else 201, json.dumps(body), headers, attempt_id=attempt.id)


def answer_again(intake: Intake, repeated: Repeated, throttle: ThrottleAnswer, computed: Computed) -> IntakeAnswer:
    """The refusal of a request that was refused before: the ids of the first one, and a longer wait."""
    about = {"attempt_id": repeated.attempt_id, "decision_id": repeated.decision_id, "refused_times": repeated.count}
    wait = repeated.retry_after(computed.decision.retry_after or SHORTEST_WAIT)
    refusal = _refusal(computed.decision.reason_code or "", about, computed, wait=wait)
    return _refused(intake, refusal, throttle, repeated.attempt_id)


def _refused(intake: Intake, refusal: DomainError, throttle: ThrottleAnswer, attempt_id: UUID) -> IntakeAnswer:
    document = problem_document(refusal, base_url=intake.base_url, request_id=intake.trace.request_id)
    headers = throttle.headers | refusal.headers
    return IntakeAnswer(refusal.status, json.dumps(document), headers, is_problem=True, attempt_id=attempt_id)


def _attempt_json(attempt: Attempt, review: Review | None) -> dict[str, Any]:
    """The answer to the caller. It is stored with the key and repeated byte for byte."""
    return {
        "id": str(attempt.id),
        "state": attempt.state,
        "reason_code": attempt.reason_code or None,
        "workflow_slug": attempt.workflow_slug,
        "contract_version": attempt.contract_version,
        "runtime_mode": attempt.runtime_mode,
        "risk_tier": attempt.risk_tier,
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


def answer_kept(attempt: Attempt, body: str) -> str:
    """What the key's record stores of this answer: the form that gives it again, or the answer itself."""
    about = (attempt.workflow_slug, attempt.contract_version, attempt.runtime_mode, attempt.risk_tier)
    again = _allowed_again(attempt.id, attempt.created_at, *about, str(attempt.decision_id), attempt.action_digest)
    # Compared, not assumed: an answer with anything else in it is stored as it was given.
    return ALLOWED_FORM if body == again else body


def answer_text(record: IdempotencyRecord) -> str:
    """The first answer to the byte, from a record as `record_latest_sql` reads it."""
    if not record.body.startswith("["):
        return record.body
    _, *facts = json.loads(record.body)
    return _allowed_again(record.attempt_id, record.first_used_at, *facts)


def _allowed_again(
    attempt_id: UUID, at: datetime, slug: str, version: int, mode: str, tier: str, decision_id: str, digest: str
) -> str:
    """The answer of form ALLOWED_FORM. Never change it: answers that were given must stay the same to the byte. If
    `_attempt_json` says something new, its answers are stored whole, or get a form of their own."""
    answer: dict[str, Any] = {"id": str(attempt_id), "state": AttemptState.APPROVED.value, "reason_code": None}
    answer |= {"workflow_slug": slug, "contract_version": version, "runtime_mode": mode, "risk_tier": tier}
    answer |= {"decision_id": decision_id, "action_digest": digest, "created_at": at.isoformat(), "review": None}
    return json.dumps(answer)


# What to do about a full cap or throttle, by its name.
REMEDIES = {
    "max_open_holds": "Reviewers must decide open holds first, or an operator raises max_open_holds.",
    "max_concurrency": "It is free again when attempts end; an operator can raise max_concurrency.",
    "per_region": "It is free again when attempts end, those of other organizations in the region too; "
    "platform-reliability can change it in concurrency_and_locks.",
}
REMEDY_OF_CAP = "It is free again when attempts end; platform-reliability can change it in concurrency_and_locks."
REMEDY_OF_SHARED = (
    "All organizations of the region share it; security-operations can change it in throttles_and_misuse."
)
REMEDY_OF_THROTTLE = "Send fewer requests; security-operations can change it in throttles_and_misuse."


def _full(computed: Computed, wait: int) -> tuple[list[FieldError], dict[str, str]]:
    """Which cap or throttle refused, with its size and use: as an error of the problem, and as RateLimit headers for a
    cap. Those of a throttle are the throttle's own."""
    throttle, concurrency = computed.facts["throttle"].get("cap"), computed.facts["concurrency"].get("cap")
    if throttle is not None:
        place = f"/limits/throttles/{throttle['name']}"
        said = f"{throttle['limit']} requests in {throttle['window_seconds']} seconds are used up"
        remedy = REMEDY_OF_SHARED if throttle["name"] in SHARED else REMEDY_OF_THROTTLE
        return [FieldError(place, said, rule=throttle["name"], remedy=remedy)], {}
    if concurrency is None:
        return [], {}
    name, limit, used = concurrency["name"], concurrency["limit"], concurrency["used"]
    what = "wait for people" if name == "max_open_holds" else "are under way"
    error = FieldError(
        f"/limits/caps/{name}", f"{used} of {limit} {what}", rule=name, remedy=REMEDIES.get(name, REMEDY_OF_CAP)
    )
    # `qu`: the unit of the quota, here not requests in a window but requests at once.
    policy = f'"{name}";q={limit};qu="concurrent-requests"'
    return [error], {"RateLimit-Policy": policy, "RateLimit": f'"{name}";r={max(limit - used, 0)};t={wait}'}


def _refusal(code: str, about: Mapping[str, object], computed: Computed, *, wait: int = 0) -> DomainError:
    """`about`: which attempt and decision the refusal is on record as."""
    facts = {name: str(value) if isinstance(value, UUID) else value for name, value in about.items()}
    seconds = wait or computed.decision.retry_after or SHORTEST_WAIT
    headers = {"Retry-After": str(seconds)}
    if code == "metadata_boundary":
        return MetadataBoundary(errors=_refused_fields(computed, code), extensions=facts)
    if code == "throttle_unavailable":
        return ThrottleUnavailable(headers=headers, extensions=facts)
    if code in THROTTLED:
        errors, more = _full(computed, seconds)
        return RateLimited(reason_code=code, errors=errors, headers=headers | more, extensions=facts)
    return AttemptDenied(reason_code=code, errors=_refused_fields(computed, code), extensions=facts)


def _refused_fields(computed: Computed, code: str) -> list[FieldError]:
    """What the deciding evaluators refused, in the words of `/decision` and `/explain`."""
    results = computed.decision.results
    return [error for result in results if result.reason_code == code for error in result.refused_fields]
