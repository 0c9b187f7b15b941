"""Intake: one transaction for key, attempt, decision, transitions, hold and ledger. It commits whole or not at all."""

from typing import Any

from django.db import transaction

from attempts.intake_body import body_problems
from attempts.services.idempotency import headers_check, key_check
from attempts.services.intake_answer import Answer
from attempts.services.intake_build import Ask
from attempts.services.intake_rows import Intake
from attempts.services.intake_take import take_in
from governance.ledger.append import ledger_append
from governance.selectors import snapshot_load
from governance.services.misuse import misuse_strike
from reasoncodes.errors import DomainError, InvalidInput
from reasoncodes.tenancy import tenant_scope


def attempt_create(*, intake: Intake) -> Answer:
    """The way of a request from its parsed body to an answer that is on record."""
    with tenant_scope(intake.credential.actor.organization_ids):
        taken = take_in(intake_check(intake))
    if taken.answer is None:
        raise taken.refusal or RuntimeError("an intake without an answer")
    return taken.answer


def intake_check(intake: Intake) -> Ask:
    """If key, headers and body have their shape; else it raises the refusal, which is on record for the body's."""
    documents: dict[str, Any] = snapshot_load(intake.facts.contract.snapshot_sha256)["documents"]
    policy = documents["idempotency_key_policy"]
    key = key_check(policy=policy, key=intake.key)
    if intake.is_from_outside:
        headers_check(policy=policy, present=intake.headers)
    problems = body_problems(intake.body)
    if problems:
        refusal = InvalidInput(errors=problems)
        attempt_refuse_unreadable(intake=intake, refusal=refusal)
        raise refusal
    return Ask.of(intake, documents, key)


def attempt_refuse_unreadable(*, intake: Intake, refusal: DomainError) -> None:
    """The contract is open, so the refusal is on the ledger; the key is not used up. The caller raises it."""
    contract, actor = intake.facts.contract, intake.credential.actor
    with tenant_scope(actor.organization_ids):
        with transaction.atomic():
            ledger_append(
                action="attempt.refused",
                organization_id=contract.organization_id,
                subject_type="contract",
                subject_id=contract.id,
                actor=actor,
                at=intake.at,
                payload={"problems": len(refusal.errors)},
                reason_code="invalid_input",
            )
        if intake.origin_step is None:
            misuse = snapshot_load(contract.snapshot_sha256)["documents"]["throttles_and_misuse"]["misuse"]
            misuse_strike(actor=actor, at=intake.at, rule=misuse)
