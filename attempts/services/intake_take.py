"""The heart of every intake, inside the caller's transaction: key, throttles, places, decision, rows, answer."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.doorbell import DISPATCH, ring
from attempts.errors import KeyConflict, KeyExpired
from attempts.intake_body import Fingerprint
from attempts.models import Attempt, IdempotencyRecord, Review
from attempts.services.idempotency import KeyUse, key_look_up, key_scope
from attempts.services.intake_answer import Answer, answer_build
from attempts.services.intake_rows import (
    Intake,
    attempt_build,
    key_record_build,
    moves_build,
    request_build,
    review_build,
)
from attempts.services.queue_enter import queue_enter
from attempts.services.slots import caps_for, slots_release, slots_take
from attempts.states import RuntimeMode, is_ours_to_execute
from governance.insert import insert_together
from governance.ledger.append import ledger_append, ledger_entry_build
from governance.models import EnforcementDecision, LedgerEntry
from governance.services.decision import decision_compute, decision_row
from governance.services.misuse import misuse_strike
from governance.throttling import ThrottleAnswer, limits_for, throttle_take
from reasoncodes.actors import Actor
from reasoncodes.errors import DomainError, FieldError
from reasoncodes.ids import uuid7


@dataclass(frozen=True, slots=True)
class Taken:
    """How it came out. `new` has the attempt, `replayed` the first answer, the others a refusal that is on record."""

    use: KeyUse
    answer: Answer | None = None
    refusal: DomainError | None = None
    attempt: Attempt | None = None
    decision: EnforcementDecision | None = None
    review: Review | None = None
    retry_after: int | None = None


def take_in(intake: Intake, documents: dict[str, Any], key: str) -> Taken:
    """The caller has opened the transaction and the tenant scope, and checked the key's format and the body."""
    policy = documents["idempotency_key_policy"]
    fingerprint = Fingerprint.of(route=intake.route, body=intake.body)
    scope = key_scope(policy=policy, credential=intake.credential, slug=intake.facts.contract.slug)
    use = KeyUse("new")
    if key and policy["mode"] == "dedupe":
        use = key_look_up(
            organization_id=intake.credential.organization.id,
            scope=scope,
            key=key,
            fingerprint=fingerprint,
            policy=policy,
            at=intake.at if intake.origin_step is None else None,
        )
    if use.outcome == "replayed" and use.record is not None:
        return Taken(use, answer=_replay(intake, use.record, use.state))
    refusal = _key_refusal(intake, use)
    if refusal is not None:
        return Taken(use, refusal=refusal)
    return _decide(intake, documents, key, scope, fingerprint, use)


def _decide(
    intake: Intake, documents: dict[str, Any], key: str, scope: str, fingerprint: Fingerprint, use: KeyUse
) -> Taken:
    actor, at = intake.credential.actor, intake.at
    attempt_id = uuid7()
    throttle = _throttle(intake, documents)
    busy = _slots(intake, documents, key, attempt_id) if throttle.status == "ok" else None
    computed = decision_compute(
        credential=intake.credential,
        intake=intake.facts,
        request=request_build(intake, key, attempt_id),
        at=at,
        deployment_region=intake.deployment_region,
        throttle=throttle.facts,
        concurrency=_concurrency(documents, busy),
    )
    decision = decision_row(computed=computed, at=at)
    attempt = attempt_build(intake, key, attempt_id, computed, decision)
    review = review_build(attempt, decision, at, authorized_by=intake.authorized_by)
    queued = _queue(attempt, decision, documents, busy, actor=actor, at=at)
    transitions, entries = moves_build(attempt, decision, actor=actor, at=at)
    entries += queued
    if attempt.ended_at is not None and busy is None:
        slots_release(attempt_id=attempt_id)
    answer = answer_build(intake, attempt, decision, review, throttle, computed)
    record = key_record_build(intake, documents, key, scope, fingerprint, attempt, answer.status, answer.body, use)
    insert_together([decision], [attempt], transitions, entries, [review] if review else [], [record] if record else [])
    _afterwards(intake, documents, attempt)
    return Taken(use, answer, None, attempt, decision, review, computed.decision.retry_after)


def _afterwards(intake: Intake, documents: dict[str, Any], attempt: Attempt) -> None:
    """After the commit. What a workflow's own step does wrong is no misuse: its definition is at fault, no caller."""
    if is_ours_to_execute(attempt):
        ring(DISPATCH, attempt.id)
    if attempt.reason_code == "metadata_boundary" and intake.origin_step is None:
        rule = documents["throttles_and_misuse"]["misuse"]
        transaction.on_commit(lambda: misuse_strike(actor=intake.credential.actor, at=intake.at, rule=rule))


def _queue(
    attempt: Attempt,
    decision: EnforcementDecision,
    documents: dict[str, Any],
    busy: str | None,
    *,
    actor: Actor,
    at: datetime,
) -> list[LedgerEntry]:
    """Allowed while a cap is full and the contract queues: it waits for a place before anybody may lease it."""
    if busy is None or decision.verdict != "allow":
        return []
    seconds = documents["concurrency_and_locks"]["queue_timeout_seconds"]
    return [queue_enter(attempt, timeout_seconds=seconds, actor=actor, at=at)]


def _throttle(intake: Intake, documents: dict[str, Any]) -> ThrottleAnswer:
    account = intake.credential.key.service_account
    subjects = {
        "tenant": str(account.organization_id),
        "user": str(account.responsible_id or ""),
        "service": str(account.id),
        "workflow": intake.facts.contract.slug,
        "context": intake.body.get("patient_context_ref", ""),
        "region": ",".join(intake.credential.organization.regions),
    }
    limits = limits_for(
        documents["throttles_and_misuse"],
        scope=f"{account.organization_id}/{intake.facts.contract.slug}",
        subjects=subjects,
    )
    return throttle_take(limits=limits)


def _slots(intake: Intake, documents: dict[str, Any], key: str, attempt_id: UUID) -> str | None:
    if intake.body.get("runtime_mode") == RuntimeMode.SHADOW:
        return None
    organization = intake.credential.organization
    dedupe = documents["idempotency_key_policy"]["mode"] == "dedupe"
    caps = caps_for(
        document=documents["concurrency_and_locks"],
        organization_id=organization.id,
        organization_cap=organization.max_concurrency,
        slug=intake.facts.contract.slug,
        key=key if dedupe else "",
        context=intake.body.get("patient_context_ref", ""),
    )
    return slots_take(organization_id=organization.id, attempt_id=attempt_id, caps=caps)


def _concurrency(documents: dict[str, Any], busy: str | None) -> dict[str, Any]:
    rules = documents["concurrency_and_locks"]
    return {
        "status": "busy" if busy else "ok",
        "busy": busy,
        "when_busy": rules["when_busy"],
        "retry_after": rules["retry_after_seconds"] if busy else 0,
    }


def _replay(intake: Intake, record: IdempotencyRecord, state: str) -> Answer:
    entry = ledger_entry_build(
        action="attempt.replayed",
        organization_id=record.organization_id,
        subject_type="attempt",
        subject_id=record.attempt_id,
        actor=intake.credential.actor,
        at=intake.at,
        payload={"state": state},
    )
    insert_together([entry])
    headers = {"Idempotent-Replayed": "true", "Attempt-State": state}
    if record.status in {201, 202}:
        headers["Location"] = f"/api/v1/attempts/{record.attempt_id}"
    return Answer(record.status, record.body, headers, is_problem=record.status >= 400, attempt_id=record.attempt_id)


def _key_refusal(intake: Intake, use: KeyUse) -> DomainError | None:
    """Committed as a ledger entry, then raised."""
    if use.record is None or use.outcome == "new":
        return None
    action, refusal = {
        "conflicting": (
            "attempt.conflicted",
            KeyConflict(errors=[FieldError(f"/{part}", "differs from the first request") for part in use.differing]),
        ),
        "expired": ("attempt.key_expired", KeyExpired(extensions={"attempt_id": str(use.record.attempt_id)})),
    }[use.outcome]
    ledger_append(
        action=action,
        organization_id=use.record.organization_id,
        subject_type="attempt",
        subject_id=use.record.attempt_id,
        actor=intake.credential.actor,
        at=intake.at,
        payload={"differing": list(use.differing)},
    )
    return refusal
