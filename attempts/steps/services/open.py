"""Opens the attempt of a workflow step: the ordinary intake, without HTTP, inside the engine's transaction."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from attempts.execution.models import DispatchIntent
from attempts.execution.services.lease import lease_new
from attempts.intake.errors import KeyConflict, KeyInvalid, KeyMissing
from attempts.intake.services.door import Intake, intake_check, intake_pass
from attempts.intake.services.intake import Admission, admit_pending
from attempts.intake.services.repeats import Repeated
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_review
from attempts.lifecycle.states import ENGINE, RuntimeMode
from attempts.reviews.models import Review
from governance.enforcement.selectors import OwnArrival, intake_own_arrival
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import Credential
from governance.people.services.accounts import service_account_ensure
from governance.sql.insert import Pending
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import AttemptCreationDisabled, DomainError, InvalidInput
from reasoncodes.base.tenancy import tenant_scope
from reasoncodes.base.trace import TraceContext

OWNER = "workflow"
# Seconds. The first wait of a step that is refused again; each further one is twice as long.
STEP_ASKS_AGAIN = 5
DESCRIPTION = "Holdpoint's own workflow engine: opens the attempts of workflow steps. It has no key."
REFUSALS = (AttemptCreationDisabled, InvalidInput, KeyConflict, KeyInvalid, KeyMissing)


@dataclass(frozen=True, slots=True)
class Opened:
    """The answer to the engine. `verdict` is allow, needs_approval or deny.

    `attempt` is None if the request was refused before it was decided; `problem` is then the code that an HTTP caller
    would get. `retry_after` (seconds): the denial is temporary. `existed`: an earlier call with this key opened it.
    `intent` is set if the request may be sent now."""

    attempt: Attempt | None
    verdict: str
    reason_code: str
    review: Review | None = None
    problem: str = ""
    retry_after: int | None = None
    existed: bool = False
    intent: DispatchIntent | None = None


def attempt_open(
    *,
    contract_id: UUID,
    actor: Actor,
    at: datetime,
    action: dict[str, Any],
    metadata: dict[str, Any],
    context_ref: str,
    idempotency_key: str,
    origin_step: UUID,
    trace: TraceContext,
    deployment_region: str,
    pending: Pending,
    keeps: bool = True,
    arrival: OwnArrival | None = None,
) -> Opened:
    """Decides as intake does, for the organization's engine account. An allowed attempt gets its lease and intent at
    once. All rows are left in `pending`. The caller's transaction must have the send lock.

    `arrival`: what the caller read under the send lock. `keeps` false: the caller completes the attempt in the same
    transaction. A denial is returned, not raised. KeyInProgress is raised if another transaction has the key's lock."""
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("attempt_open belongs into its caller's transaction")
    arrival = arrival or intake_own_arrival(contract_id=contract_id, account_slug=ENGINE)
    if arrival is None or not actor.may_act_in(arrival.organization.id):
        return _refused(AttemptCreationDisabled())
    with tenant_scope({arrival.organization.id}):
        credential = _credential(arrival, at=at)
        try:
            facts = intake_pass(credential=credential, facts=arrival.facts)
            body: dict[str, Any] = {"runtime_mode": RuntimeMode.ACTIVE.value, "action": action, "metadata": metadata}
            intake = Intake(
                credential=credential,
                facts=facts,
                route=f"STEP {facts.contract.slug}/{facts.contract.version}",
                key=idempotency_key,
                body=body | ({"patient_context_ref": context_ref} if context_ref else {}),
                trace=trace,
                at=at,
                deployment_region=deployment_region,
                base_url="",
                origin_step=origin_step,
            )
            opened = _opened(admit_pending(intake_check(intake), pending, keeps=keeps))
            # By the account that asked for the attempt: the lease is one more move of its entry.
            return _sent(opened, pending, actor=credential.actor, at=at)
        except REFUSALS as refusal:
            return _refused(refusal)


def _credential(arrival: OwnArrival, *, at: datetime) -> Credential:
    """A credential of the engine, without an API key. Its only scope is to create attempts."""
    account = arrival.account or _account(arrival, at=at)
    account.organization = arrival.organization
    scopes = frozenset({ApiScope.ATTEMPTS_CREATE.value})
    actor = Actor(ActorKind.SERVICE, account.id, frozenset({arrival.organization.id}), scopes)
    key = new_row(ApiKey, service_account_id=account.id, scopes=sorted(scopes))
    # Fills the relation as a query would: otherwise reading it would cost a statement in every advance.
    key._state.fields_cache["service_account"] = account
    return Credential(key=key, actor=actor)


def _sent(opened: Opened, pending: Pending, *, actor: Actor, at: datetime) -> Opened:
    """Adds lease and intent to an attempt that is allowed and has its slots."""
    # One decision is both: contract, policy, shutdowns and action were read and decided in this transaction, under the
    # send lock, so nothing can have changed between intake and dispatch.
    attempt = opened.attempt
    if attempt is None or opened.existed or opened.verdict != "allow" or attempt.queued_until is not None:
        return opened
    return replace(opened, intent=lease_new(attempt, pending, owner=OWNER, actor=actor, at=at))


def _account(arrival: OwnArrival, *, at: datetime) -> ServiceAccount:
    return service_account_ensure(at=at, organization=arrival.organization, slug=ENGINE, description=DESCRIPTION)


def _opened(admission: Admission) -> Opened:
    use, decided = admission.use, admission.decided
    if use.outcome == "replayed" and use.record is not None:
        return _existing(use.record.attempt_id)
    if admission.repeated is not None:
        return _put_off(admission.repeated, admission.refused_as)
    if decided is None:
        return _refused(admission.refusal or InvalidInput())
    return Opened(
        attempt=decided.attempt,
        verdict=decided.decision.verdict,
        reason_code=decided.attempt.reason_code,
        review=decided.review,
        retry_after=decided.computed.decision.retry_after,
    )


def _put_off(repeated: Repeated, reason_code: str) -> Opened:
    """The step was refused for the same reason before: it waits longer each time, and no further attempt is stored."""
    attempt = Attempt.objects.get(id=repeated.attempt_id)
    return Opened(attempt, "deny", reason_code, None, retry_after=repeated.retry_after(STEP_ASKS_AGAIN))


def _existing(attempt_id: UUID) -> Opened:
    attempt = Attempt.objects.select_related("decision").get(id=attempt_id)
    return Opened(
        attempt=attempt,
        verdict=attempt.decision.verdict,
        reason_code=attempt.reason_code,
        review=attempt_review(attempt=attempt),
        existed=True,
    )


def _refused(refusal: DomainError) -> Opened:
    return Opened(
        attempt=None, verdict="deny", reason_code=refusal.reason_code or "invalid_input", problem=refusal.code
    )
