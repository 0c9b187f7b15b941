"""One request on its way in, and everything that is written of it: built in memory, inserted by whoever asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from attempts.doorbell import DISPATCH, ring
from attempts.intake_body import Fingerprint
from attempts.models import Attempt, AttemptTransition, IdempotencyRecord, Review
from attempts.services.idempotency import KeyUse, key_scope
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
from attempts.services.slots import Cap, caps_for
from attempts.states import RuntimeMode, is_ours_to_execute
from governance.models import EnforcementDecision, LedgerEntry
from governance.services.decision import Computed, decision_compute, decision_row
from governance.services.misuse import misuse_strike
from governance.throttling import Limit, ThrottleAnswer, limits_for


@dataclass(frozen=True, slots=True)
class Ask:
    """A request whose key and body have their shape, under the documents of its contract."""

    intake: Intake
    documents: dict[str, Any]
    key: str
    scope: str
    fingerprint: Fingerprint

    @classmethod
    def of(cls, intake: Intake, documents: dict[str, Any], key: str) -> "Ask":
        policy = documents["idempotency_key_policy"]
        scope = key_scope(policy=policy, credential=intake.credential, slug=intake.facts.contract.slug)
        return cls(intake, documents, key, scope, Fingerprint.of(route=intake.route, body=intake.body))

    @property
    def is_deduplicated(self) -> bool:
        return bool(self.key) and self.documents["idempotency_key_policy"]["mode"] == "dedupe"

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The throttles that it falls under."""
        account, slug = self.intake.credential.key.service_account, self.intake.facts.contract.slug
        subjects = {
            "tenant": str(account.organization_id),
            "user": str(account.responsible_id or ""),
            "service": str(account.id),
            "workflow": slug,
            "context": self.intake.body.get("patient_context_ref", ""),
            "region": ",".join(self.intake.credential.organization.regions),
        }
        scope = f"{account.organization_id}/{slug}"
        return limits_for(self.documents["throttles_and_misuse"], scope=scope, subjects=subjects)

    @property
    def caps(self) -> list[Cap]:
        """The places that it needs; a shadow needs none."""
        if self.intake.body.get("runtime_mode") == RuntimeMode.SHADOW:
            return []
        organization = self.intake.credential.organization
        dedupe = self.documents["idempotency_key_policy"]["mode"] == "dedupe"
        return caps_for(
            document=self.documents["concurrency_and_locks"],
            organization_id=organization.id,
            organization_cap=organization.max_concurrency,
            slug=self.intake.facts.contract.slug,
            key=self.key if dedupe else "",
            context=self.intake.body.get("patient_context_ref", ""),
        )


@dataclass(frozen=True, slots=True)
class Built:
    """Decided, and not yet on record."""

    decision: EnforcementDecision
    attempt: Attempt
    review: Review | None
    transitions: list[AttemptTransition]
    entries: list[LedgerEntry]
    record: IdempotencyRecord | None
    answer: Answer
    computed: Computed

    @property
    def groups(self) -> list[Sequence[Model]]:
        review, record = [self.review] if self.review else [], [self.record] if self.record else []
        return [[self.decision], [self.attempt], self.transitions, self.entries, review, record]


def build(ask: Ask, use: KeyUse, attempt_id: UUID, throttle: ThrottleAnswer, busy: str | None) -> Built:
    """Decides, and makes the rows and the exact answer, which the key's record holds."""
    intake, at = ask.intake, ask.intake.at
    computed = decision_compute(
        credential=intake.credential,
        intake=intake.facts,
        request=request_build(intake, ask.key, attempt_id),
        at=at,
        deployment_region=intake.deployment_region,
        throttle=throttle.facts,
        concurrency=_concurrency(ask.documents, busy),
    )
    decision = decision_row(computed=computed, at=at)
    attempt = attempt_build(intake, ask.key, attempt_id, computed, decision)
    review = review_build(attempt, decision, at, authorized_by=intake.authorized_by)
    queued = _queue(ask, attempt, decision, busy)
    transitions, entries = moves_build(attempt, decision, actor=intake.credential.actor, at=at)
    answer = answer_build(intake, attempt, decision, review, throttle, computed)
    record = key_record_build(
        intake, ask.documents, ask.key, ask.scope, ask.fingerprint, attempt, answer.status, answer.body, use
    )
    return Built(decision, attempt, review, transitions, entries + queued, record, answer, computed)


def afterwards(ask: Ask, attempt: Attempt, *, rings: bool = True) -> None:
    """After the commit. `rings` false: whoever asked sends it on. What a workflow's own step does wrong is no misuse:
    its definition is at fault, no caller."""
    intake = ask.intake
    if rings and is_ours_to_execute(attempt):
        ring(DISPATCH, attempt.id)
    if attempt.reason_code == "metadata_boundary" and intake.origin_step is None:
        rule = ask.documents["throttles_and_misuse"]["misuse"]
        transaction.on_commit(lambda: misuse_strike(actor=intake.credential.actor, at=intake.at, rule=rule))


def _queue(ask: Ask, attempt: Attempt, decision: EnforcementDecision, busy: str | None) -> list[LedgerEntry]:
    """Allowed while a cap is full and the contract queues: it waits for a place before anybody may lease it."""
    if busy is None or decision.verdict != "allow":
        return []
    seconds = ask.documents["concurrency_and_locks"]["queue_timeout_seconds"]
    return [queue_enter(attempt, timeout_seconds=seconds, actor=ask.intake.credential.actor, at=ask.intake.at)]


def _concurrency(documents: dict[str, Any], busy: str | None) -> dict[str, Any]:
    rules = documents["concurrency_and_locks"]
    return {
        "status": "busy" if busy else "ok",
        "busy": busy,
        "when_busy": rules["when_busy"],
        "retry_after": rules["retry_after_seconds"] if busy else 0,
    }
