"""What the caller or an operator does with an attempt later: ask again (replay), or withdraw it, alone or in bulk.

A replay goes through the whole intake. Authorized retries and compensations are in `quarantine`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.intake.selectors import has_replay_role
from attempts.intake.services.door import Intake, intake_door
from attempts.intake.services.intake import attempt_create
from attempts.intake.services.rows import IntakeAnswer
from attempts.lifecycle.errors import NotEligible, ReplayRoleNeeded
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_lock, attempts_chosen
from attempts.lifecycle.services.transition import transition_apply
from attempts.lifecycle.states import AttemptState
from attempts.reviews.services.decide import review_cancel
from governance.boundary.services import note_create
from governance.enforcement.models import snapshot_load
from governance.ledger.services import actor_reference, ledger_append
from governance.people.models import ApiKey
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import Credential
from governance.violations.errors import OwnWork
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import NotFound, WrongState
from reasoncodes.base.trace import TraceContext
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


@dataclass(frozen=True, slots=True)
class ReplayOrder:
    """The key of the new attempt, and facts of the request."""

    key: str | None
    trace: TraceContext | None = None
    deployment_region: str = ""
    base_url: str = ""


def attempt_replay(*, attempt: Attempt, intake: Intake) -> IntakeAnswer:
    """A new attempt with the old request, if the contract's replay policy allows it. `intake` has the new key."""
    rules = _replay_rules(intake)
    if rules["requires_role"] is not None:
        raise _role_needed(attempt)
    if attempt.caller_id != intake.credential.actor.id:
        raise NotEligible("Only the service that asked first may ask again.")
    _replay_check(attempt, rules)
    return attempt_create(intake=replace(intake, body=body_of(attempt), retry_of=attempt.id))


@violations_recorded
def attempt_replay_by_person(*, actor: Actor, at: datetime, attempt: Attempt, order: ReplayOrder) -> IntakeAnswer:
    """The same by a person who has the role that the contract asks for, in the name of the service that asked first."""
    with transaction.atomic():
        # Locked as by every follow-up, so that the entry below and the new attempt commit together.
        attempt = attempt_lock(attempt_id=attempt.id)
        intake = intake_for_caller(
            attempt, order, slug=attempt.workflow_slug, version=str(attempt.contract_version), at=at
        )
        rules = _replay_rules(intake)
        if not _has_role(actor, attempt, rules["requires_role"]):
            raise _role_needed(attempt)
        if attempt.caller.responsible_id == actor.id:
            raise OwnWork(
                "You are responsible for the service that asked. Somebody else with the role replays it.",
                subject_type="attempt",
                subject_id=attempt.id,
                organization_id=attempt.organization_id,
            )
        _replay_check(attempt, rules)
        by = actor_reference(actor)
        answer = attempt_create(intake=replace(intake, body=body_of(attempt), retry_of=attempt.id, authorized_by=by))
        if answer.attempt_id is not None and answer.attempt_id != attempt.id:
            ledger_append(
                action="attempt.replay_asked",
                organization_id=attempt.organization_id,
                subject_type="attempt",
                subject_id=attempt.id,
                actor=actor,
                at=at,
                payload={"replay": str(answer.attempt_id), "role": rules["requires_role"]},
            )
    return answer


def _replay_rules(intake: Intake) -> Mapping[str, Any]:
    rules: Mapping[str, Any] = snapshot_load(intake.facts.contract.snapshot_sha256)["documents"]["retry_and_replay"]
    replay: Mapping[str, Any] = rules["replay"]
    return replay


def _has_role(actor: Actor, attempt: Attempt, role: str | None) -> bool:
    if actor.kind is not ActorKind.PERSON or actor.id is None:
        return False
    return has_replay_role(attempt=attempt, person_id=actor.id, role=role)


def _role_needed(attempt: Attempt) -> ReplayRoleNeeded:
    return ReplayRoleNeeded(subject_type="attempt", subject_id=attempt.id, organization_id=attempt.organization_id)


def _replay_check(attempt: Attempt, rules: Mapping[str, Any]) -> None:
    if attempt.state not in rules["eligible_states"]:
        raise NotEligible(f"The contract allows a replay from: {', '.join(rules['eligible_states']) or 'no state'}.")
    if attempt.erased_at is not None:
        raise NotEligible("The request was erased by order, so it cannot be repeated.")
    if attempt.operation == "":
        raise NotEligible("Parts of the request were withheld by the boundary, so it cannot be repeated.")


def intake_for_caller(attempt: Attempt, order: ReplayOrder, *, slug: str, version: str, at: datetime) -> Intake:
    """An intake in the name of the service that asked first, under the contract as it is now."""
    # An unsaved ApiKey with the one scope: the person acts in the name of the caller, without its secret.
    account = attempt.caller
    actor = Actor(
        ActorKind.SERVICE, account.id, frozenset({account.organization_id}), frozenset({ApiScope.ATTEMPTS_CREATE})
    )
    credential = Credential(key=ApiKey(service_account=account, scopes=[ApiScope.ATTEMPTS_CREATE]), actor=actor)
    return Intake(
        credential=credential,
        facts=intake_door(credential=credential, workflow_slug=slug, contract_version=version),
        route=f"{slug}/{version}",
        key=order.key,
        body=None,
        trace=order.trace or TraceContext("", attempt.request_trace_id, ""),
        at=at,
        deployment_region=order.deployment_region,
        base_url=order.base_url,
    )


def body_of(attempt: Attempt) -> dict[str, Any]:
    """The request body, rebuilt from the stored columns."""
    action: dict[str, Any] = {
        "connector": attempt.connector,
        "operation": attempt.operation,
        "target_ref": attempt.target_ref,
        "risk_tier": attempt.risk_tier,
        "fields": attempt.fields,
    }
    action |= {"payload_ref": attempt.payload_ref} if attempt.payload_ref else {}
    action |= {"payload_sha256": attempt.payload_sha256} if attempt.payload_sha256 else {}
    body = {"runtime_mode": attempt.runtime_mode, "action": action, "metadata": attempt.metadata}
    return body | ({"patient_context_ref": attempt.patient_context_ref} if attempt.patient_context_ref else {})


BY_CALLER = "cancelled_by_caller"
# The ids of a bulk are in the URL, and the web server accepts a request line of 4 KiB.
AT_ONCE = 100
TOO_LATE = "It is too late to withdraw this attempt: it has ended, or an executor has leased it."


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """One attempt of a bulk. `refusal` says why it cannot be, or was not, withdrawn; empty if there is no refusal."""

    attempt: Attempt
    refusal: str = ""


def attempt_cancel(*, actor: Actor, at: datetime, attempt_id: UUID, reason_code: str = "", note: str = "") -> Attempt:
    """Withdraws an attempt, for the service that asked or for an operator, who gives a reason."""
    with transaction.atomic():
        # The row lock, then the check: without it a lease could be granted between the check and the denial.
        attempt = attempt_lock(attempt_id=attempt_id)
        if not actor.may_act_in(attempt.organization_id):
            raise NotFound
        if actor.kind is ActorKind.SERVICE and actor.id != attempt.caller_id:
            raise NotFound
        if not _withdrawable(attempt):
            raise WrongState(TOO_LATE)
        payload = _said(attempt, reason_code, note) if reason_code else {}
        code = reason_code or BY_CALLER
        # Attempt before review, the lock order everywhere.
        review_cancel(attempt=attempt, actor=actor, at=at, reason_code=code)
        transition_apply(attempt, "deny", actor=actor, at=at, payload=payload, reason_code=code)
    return attempt


def _withdrawable(attempt: Attempt) -> bool:
    # Only before the first lease: after it the action may have been executed, and a denial says that nothing was.
    return attempt.state in {AttemptState.REVIEW_REQUIRED, AttemptState.APPROVED} and attempt.lease_token == 0


def _said(attempt: Attempt, reason_code: str, note: str) -> dict[str, str]:
    reason_code_require(organization_id=attempt.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
    stored = note_create(organization_id=attempt.organization_id, text=note)
    return {"note": str(stored.id), "note_sha256": stored.sha256} if stored else {}


def attempts_preview(*, attempt_ids: Sequence[UUID]) -> list[Withdrawal]:
    """What withdrawing would do to each of them now. Takes no lock: each is checked again when it is withdrawn."""
    rows = attempts_chosen(ids=attempt_ids[:AT_ONCE])
    return [Withdrawal(row, "" if _withdrawable(row) else TOO_LATE) for row in rows]


def attempts_cancel(
    *, actor: Actor, at: datetime, attempt_ids: Sequence[UUID], reason_code: str, note: str = ""
) -> list[Withdrawal]:
    """Withdraws one after the other, each in its own transaction, so that a refused one does not undo the others."""
    done = []
    for row in attempts_chosen(ids=attempt_ids[:AT_ONCE]):
        try:
            ended = attempt_cancel(actor=actor, at=at, attempt_id=row.id, reason_code=reason_code, note=note)
            done.append(Withdrawal(ended))
        except (WrongState, NotFound) as refusal:
            done.append(Withdrawal(row, refusal.detail))
    return done
