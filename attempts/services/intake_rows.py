"""The rows of an intake, built and not yet saved: what is stored of a request, and nothing else."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from attempts.intake_body import Fingerprint, action_digest
from attempts.models import Attempt, AttemptTransition, IdempotencyRecord, Review
from attempts.review_rules import Exclusion
from attempts.services.idempotency import KeyUse
from attempts.services.transition import entry_build, transition_build
from attempts.states import RuntimeMode
from governance.models import EnforcementDecision, LedgerEntry
from governance.rows import new_row
from governance.selectors import Credential, IntakeFacts
from governance.services.decision import Computed
from reasoncodes.actors import Actor
from reasoncodes.ids import uuid7
from reasoncodes.trace import TraceContext

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
VERB_OF = {"allow": "approve", "needs_approval": "hold", "deny": "deny"}


@dataclass(frozen=True, slots=True)
class Intake:
    """One request that passed the door."""

    credential: Credential
    facts: IntakeFacts
    route: str
    key: str | None
    body: Any
    trace: TraceContext
    at: datetime
    deployment_region: str
    base_url: str
    headers: frozenset[str] = frozenset()
    known: tuple[tuple[Any, ...], ...] | None = None
    """Records of the key that the door found, as `KEY_RECORDS` gives them; None when nobody looked."""
    retry_of: UUID | None = None
    compensates: UUID | None = None
    origin_step: UUID | None = None
    authorized_by: str = ""
    """The commitment of the person who sent it on its way again; they do not review it."""

    @property
    def is_from_outside(self) -> bool:
        """Not made by Holdpoint itself from something that is on record already."""
        return self.retry_of is None and self.compensates is None and self.origin_step is None

    def with_body(self, body: Any) -> "Intake":
        return replace(self, body=body)


def request_build(intake: Intake, key: str, attempt_id: UUID) -> dict[str, Any]:
    """The canonical request that enforcement evaluates: the ten envelope fields, the action, the metadata."""
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
        "audit_event_link": f"urn:holdpoint:attempt:{attempt_id}",
    }
    return {
        "format": "holdpoint-request-v1",
        "envelope": envelope,
        "action": {"connector": contract.adapter} | body["action"],
        "metadata": body.get("metadata", {}),
    }


def attempt_build(
    intake: Intake, key: str, attempt_id: UUID, computed: Computed, decision: EnforcementDecision
) -> Attempt:
    """From what may be stored: what the boundary refused is empty here too."""
    contract, request = intake.facts.contract, computed.request
    envelope, action = request["envelope"], request["action"]
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
        action_digest=action_digest(action),
        metadata=request.get("metadata", {}),
        retry_of_id=intake.retry_of,
        compensates_id=intake.compensates,
        origin_step=intake.origin_step,
        created_at=intake.at,
        retention_until=computed.retention_until(intake.at),
    )


def review_build(
    attempt: Attempt, decision: EnforcementDecision, at: datetime, *, authorized_by: str = ""
) -> Review | None:
    if decision.approval is None or decision.verdict != "needs_approval":
        return None
    buckets = decision.approval.get("buckets", [])
    return Review(
        organization_id=attempt.organization_id,
        attempt_id=attempt.id,
        tier=decision.approval["tier"],
        approvals_required=decision.approval["approvals_required"],
        buckets=buckets,
        open_tiers=[bucket["tier"] for bucket in buckets],
        excluded=[{"ref": authorized_by, "reason": Exclusion.AUTHORIZED_IT.value}] if authorized_by else [],
        action_digest=attempt.action_digest,
        requested_at=at,
        remind_at=at + timedelta(seconds=decision.approval["expires_in_seconds"] / 2),
        expires_at=at + timedelta(seconds=decision.approval["expires_in_seconds"]),
    )


def moves_build(
    attempt: Attempt, decision: EnforcementDecision, *, actor: Actor, at: datetime
) -> tuple[list[AttemptTransition], list[LedgerEntry]]:
    """received → deduplicated → what was decided, each with its transition and its ledger entry."""
    entries = [entry_build(attempt, "attempt.received", actor=actor, at=at, payload={"digest": attempt.action_digest})]
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
    intake: Intake,
    documents: dict[str, Any],
    key: str,
    scope: str,
    fingerprint: Fingerprint,
    attempt: Attempt,
    status: int,
    body: str,
    use: KeyUse,
) -> IdempotencyRecord | None:
    """Only an answer that would come out the same uses the key up: throttled and malformed requests may come again."""
    policy = documents["idempotency_key_policy"]
    if not key or policy["mode"] != "dedupe" or attempt.reason_code in KEEPS_KEY_FREE:
        return None
    return new_row(
        IdempotencyRecord,
        id=uuid7(),
        organization_id=attempt.organization_id,
        scope=scope,
        key=key,
        fingerprint=fingerprint.value,
        parts=fingerprint.short,
        attempt_id=attempt.id,
        status=status,
        body=body if intake.origin_step is None else "",  # a step is answered by its attempt, never by HTTP
        first_used_at=intake.at,
        expires_at=intake.at + timedelta(seconds=policy["ttl_seconds"]),
        generation=use.record.generation + 1 if use.record else 1,
    )
