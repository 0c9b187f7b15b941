"""Leases. The rules are checked again under the locks (a deny wins), then one conditional UPDATE takes the lease and
commits the intent with it. A growing fence makes older leases worthless."""

# Lease and intent are one commit. With a later intent there would be leases of which nobody knows whether something
# was sent under them. The fence grows with every lease, so that a report under an older one is refused.
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from attempts.execution.adapters.base import effect_in_force
from attempts.execution.configured import crash_point
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.outcome import LEASE_SECONDS
from attempts.execution.states import ReceiptOutcome
from attempts.intake.rules import action_digest
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_review, documents_of
from attempts.lifecycle.services.transition import entry_build, transition_apply
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.services.open import category_for, quarantine_open
from attempts.quarantine.states import QuarantineCategory
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.selectors.standing import approval_stands
from governance.boundary.rules import facts_stated
from governance.contracts.states import ContractState, Effect
from governance.enforcement.models import facts_declared
from governance.enforcement.rules import Verdict
from governance.enforcement.selectors import IntakeFacts, intake_facts
from governance.enforcement.sql import Closed, send_lock_share
from governance.ledger.models import LedgerEntry
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7

LONGEST_CHAIN = 50  # bounds the loop below, which costs one statement per link


@dataclass(frozen=True, slots=True)
class EffectChain:
    """An attempt and the failed ones that it retries. All are the same side effect, so they share one effect key."""

    attempt_ids: tuple[UUID, ...]

    @property
    def key(self) -> str:
        return f"hp-{self.attempt_ids[-1]}"


def _effect_chain(attempt: Attempt) -> EffectChain:
    """Follows `retry_of` while the earlier attempt failed. A replay of a completed or denied one is a new effect."""
    # The receiver deduplicates on the key of the first attempt: if a person wrongly found that it did not happen, the
    # receiver still acts only once.
    ids, earlier_id = [attempt.id], attempt.retry_of_id
    while earlier_id is not None and len(ids) < LONGEST_CHAIN:
        earlier = Attempt.objects.filter(id=earlier_id).values_list("state", "retry_of_id").first()
        if earlier is None or earlier[0] != AttemptState.QUARANTINED:
            break
        ids.append(earlier_id)
        earlier_id = earlier[1]
    return EffectChain(tuple(ids))


def _success_already(*, chain: EffectChain) -> Receipt | None:
    """A success of any attempt of the chain."""
    # Late evidence counts too: its sender had a lease, and acting twice is worse than not acting.
    rows = Receipt.objects.filter(attempt_id__in=chain.attempt_ids, outcome=ReceiptOutcome.SUCCESS)
    return rows.order_by("id").first()


ACTION_COLUMNS = ("connector", "operation", "target_ref", "risk_tier", "payload_ref", "payload_sha256", "fields")


class Go(StrEnum):
    SEND = "send"
    HOLD = "hold"
    DENY = "deny"
    UNRESOLVED = "unresolved"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Recheck:
    """The answer. HOLD: not now, try again later. DENY: end the attempt. UNRESOLVED: an earlier try has no receipt.
    DONE: the side effect has already happened, as `receipt` shows."""

    go: Go
    reason_code: str = ""
    chain: EffectChain | None = None
    receipt: Receipt | None = None


@dataclass(slots=True)
class Rechecks:
    """The re-checks of one lease statement. Contracts that several attempts share are read once."""

    # Kept only within one transaction that has the send lock: until its commit nothing that was read can be closed.

    _facts: dict[tuple[UUID, str, int], IntakeFacts | None] = field(default_factory=dict)

    def of(self, attempt: Attempt) -> Recheck:
        """Checks one attempt, which comes with organization and decision. `tries` includes the try that would start."""
        refusal = self._contract(attempt)
        if refusal is not None:
            return refusal
        if not self._digest_unchanged(attempt):
            return Recheck(Go.DENY, "effect_mismatch")
        if attempt.tries > 1 and not _earlier_tries_resolved(attempt):
            return Recheck(Go.UNRESOLVED, "outcome_unknown")
        chain = _effect_chain(attempt)
        receipt = _success_already(chain=chain) if attempt.tries > 1 or len(chain.attempt_ids) > 1 else None
        if receipt is None and not _signers_stand(attempt):
            return Recheck(Go.DENY, "approver_standing_lost")
        return Recheck(Go.DONE if receipt else Go.SEND, chain=chain, receipt=receipt)

    def _contract(self, attempt: Attempt) -> Recheck | None:
        facts = self._read(attempt)
        if facts is None:
            return Recheck(Go.HOLD, "attempt_creation_disabled")
        contract, closed = facts.contract, facts.closed_by
        if contract.state == ContractState.RETIRED:  # final, so waiting does not help
            return Recheck(Go.DENY, "contract_retired")
        if Closed.STATE in closed:
            return Recheck(Go.HOLD, contract.closed_reason_code or "contract_suspended")
        if Closed.ORGANIZATION in closed:
            return Recheck(Go.HOLD, "attempt_creation_disabled")
        return Recheck(Go.HOLD, facts.stopped_by or "") if Closed.SHUTDOWN in closed else None

    def _read(self, attempt: Attempt) -> IntakeFacts | None:
        key = (attempt.organization_id, attempt.workflow_slug, attempt.contract_version)
        if key not in self._facts:
            self._facts[key] = intake_facts(
                organization=attempt.organization, slug=attempt.workflow_slug, version=str(attempt.contract_version)
            )
        return self._facts[key]

    def _digest_unchanged(self, attempt: Attempt) -> bool:
        """Whether the action that was decided and approved, with its facts, is the one that would be sent now."""
        # The adapter reads the columns, people approved the digest: a changed column would send what nobody approved.
        request, read = attempt.decision.request, self._read(attempt)
        declared = facts_declared(read.contract.snapshot_sha256) if read is not None else ()
        action, stated = request["action"], facts_stated(declared, request.get("metadata", {}))
        if action_digest(action, facts=stated) != attempt.action_digest:
            return False
        if facts_stated(declared, attempt.metadata) != stated:
            return False
        empty: dict[str, list[str]] = {"fields": []}
        return all((action.get(name) or empty.get(name, "")) == getattr(attempt, name) for name in ACTION_COLUMNS)


def _signers_stand(attempt: Attempt) -> bool:
    """Whether those who approved a held attempt could still approve it. True for an attempt that was never held."""
    # Nobody would accept "approved by somebody who is no longer a reviewer". Revoking a role takes the send lock
    # exclusively, so the role cannot be lost between this check and the intent.
    if attempt.decision.verdict != Verdict.NEEDS_APPROVAL:
        return True
    review = attempt_review(attempt=attempt)
    return review is not None and approval_stands(review=review, attempt=attempt, now=database_now())


def _earlier_tries_resolved(attempt: Attempt) -> bool:
    """Whether every earlier intent has its receipt. For effect `once` a second try is never allowed."""
    if effect_in_force(adapter=attempt.connector, effect=attempt.effect) == Effect.ONCE:
        return False
    answered = Receipt.objects.filter(attempt_id=attempt.id, late=False).values("intent_id")
    return not DispatchIntent.objects.filter(attempt_id=attempt.id).exclude(id__in=answered).exists()


# An attempt that may not be sent now becomes due again after this time. Without the wait it would stay the oldest due
# one, and batches would lease it again and again instead of those behind it.
LOOK_AGAIN_SECONDS = 15


def _refusal_apply(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime, tell: bool) -> None:
    """Takes the lease back and does what the re-check says. `attempt` is locked and leased by this transaction. `tell`
    as in `transition_apply`. Go.HOLD leaves no record, because nothing has changed."""
    _undo(attempt)
    match checked.go:
        case Go.DONE if checked.receipt is not None:
            _complete_from(attempt, checked.receipt, actor=actor, at=at, tell=tell)
        case Go.DENY if attempt.tries == 0:
            transition_apply(attempt, "deny", actor=actor, at=at, tell=tell, reason_code=checked.reason_code)
        case Go.DENY:
            _set_apart(attempt, checked, actor=actor, at=at, tell=tell)
        case Go.UNRESOLVED:
            quarantine_open(
                attempt,
                actor=actor,
                at=at,
                category=QuarantineCategory.OUTCOME_UNKNOWN,
                reason_code="outcome_unknown",
                payload={"trigger": "intent_without_receipt"},
                tell=tell,
            )
        case _:
            pass


def _undo(attempt: Attempt) -> None:
    """Takes the lease back before its commit, so that nobody has seen it. The attempt is due again a little later."""
    # In SQL, because the due time must come from the database's clock: LEASE compares it with that clock.
    attempt.tries -= 1
    attempt.lease_token -= 1
    attempt.lease_owner, attempt.lease_expires_at = "", None
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE attempts_attempt SET tries = tries - 1, lease_token = lease_token - 1, lease_owner = '',"
            " lease_expires_at = NULL, next_eligible_at = statement_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s",
            [LOOK_AGAIN_SECONDS, attempt.id],
        )


def _complete_from(attempt: Attempt, earlier: Receipt, *, actor: Actor, at: datetime, tell: bool) -> None:
    """Completes the attempt with an earlier receipt of the same side effect. Nothing is sent."""
    receipt = Receipt(
        attempt=attempt,
        outcome=ReceiptOutcome.SUCCESS,
        response_metadata=earlier.response_metadata,
        reversible=earlier.reversible,
        reversal_hint=earlier.reversal_hint,
        at=at,
    )
    insert_together([receipt])
    payload = {"receipt": str(receipt.id), "cached_from": str(earlier.id)}
    transition_apply(attempt, "complete", actor=actor, at=at, tell=tell, payload=payload)


def _set_apart(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime, tell: bool) -> None:
    """Quarantines an attempt that ran before and may not run again. A denial would say that it never ran."""
    quarantine_open(
        attempt,
        actor=actor,
        at=at,
        category=category_for(documents_of(attempt), "recheck_refused_after_lease"),
        reason_code="adapter_failed",
        payload={"trigger": "recheck_refused_after_lease", "refused": checked.reason_code},
        tell=tell,
    )


LARGEST_BATCH = 50  # one transaction has the send lock for the whole batch, and a shutdown waits for it
# The index `attempt_ready` gives the due attempts in order. SKIP LOCKED: without it all workers would wait for the same
# oldest row. The database's clock decides about due times and ends of leases, because workers' clocks differ.
LEASE = """
WITH due AS (
    SELECT id FROM attempts_attempt
    WHERE state = 'approved-for-execution' AND next_eligible_at <= statement_timestamp() AND queued_until IS NULL
      AND (lease_expires_at IS NULL OR lease_expires_at < statement_timestamp()) AND {which}
    ORDER BY next_eligible_at LIMIT %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE attempts_attempt SET lease_owner = %(owner)s, lease_token = lease_token + 1, tries = tries + 1,
    lease_expires_at = statement_timestamp() + make_interval(secs => %(seconds)s), next_eligible_at = NULL
FROM due WHERE attempts_attempt.id = due.id
RETURNING attempts_attempt.id
"""
# Who executes: our workers (not attempts of workflow steps, which go through the outbox), or the caller's programs.
OURS = "runtime_mode = 'active' AND connector <> 'external' AND origin_step IS NULL"
THEIRS = "(runtime_mode = 'client_driven' OR (runtime_mode = 'active' AND connector = 'external'))"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the due attempts to lease: a condition in SQL and its parameters."""

    # The condition is put into the statement as it is, so it must never contain text of a caller.

    which: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def only(self, condition: str, **parameters: Any) -> "Selection":
        return Selection(f"{self.which} AND {condition}", self.parameters | parameters)


@dataclass(frozen=True, slots=True)
class Granted:
    attempt: Attempt
    intent: DispatchIntent


@dataclass(slots=True)
class Leases:
    granted: list[Granted] = field(default_factory=list)
    refused: list[tuple[UUID, Recheck]] = field(default_factory=list)


def for_worker(*, attempt_id: UUID) -> Selection:
    return Selection(OURS).only("id = %(attempt)s", attempt=attempt_id)


def for_executor(*, actor: Actor, attempt_id: UUID | None = None, connector: str | None = None) -> Selection:
    """Attempts that the caller's own programs execute, in the actor's organizations."""
    # The statement is not built by the tenant manager, so the organizations are a condition of it.
    chosen = Selection(THEIRS).only("organization_id = ANY(%(organizations)s)", organizations=[*actor.organization_ids])
    if attempt_id is not None:
        chosen = chosen.only("id = %(attempt)s", attempt=attempt_id)
    if connector is not None:
        chosen = chosen.only("connector = %(connector)s", connector=connector)
    return chosen


def attempt_lease(
    *,
    actor: Actor,
    at: datetime,
    owner: str,
    selection: Selection,
    limit: int = 1,
    seconds: float | None = LEASE_SECONDS,
    tell: bool = True,
) -> Leases:
    """Leases up to `limit` due attempts. Each gets its intent, or it is refused: it waits, ends or goes to quarantine.

    `seconds` None: a lease without an end, for a workflow step, which has its own timeout. `tell` as in
    `transition_apply`."""
    leases, rechecks = Leases(), Rechecks()
    with transaction.atomic():
        # Before everything that the re-checks read: otherwise a shutdown could commit between its being read as absent
        # and the commit of the intent, and something would be sent after "engaged" was answered.
        send_lock_share()
        attempts = _take(owner, selection, min(limit, LARGEST_BATCH), seconds)
        crash_point("after_lease")
        entries: list[LedgerEntry] = []
        for attempt in attempts:
            checked = rechecks.of(attempt)
            if checked.go is not Go.SEND:
                _refusal_apply(attempt, checked, actor=actor, at=at, tell=tell)
                leases.refused.append((attempt.id, checked))
                continue
            if checked.chain is None:
                raise ValueError("only what was checked is sent")
            intent = _intent(attempt, checked.chain.key, at)
            leases.granted.append(Granted(attempt, intent))
            entries += _entries(attempt, intent, actor=actor, at=at)
        insert_together([granted.intent for granted in leases.granted], entries)
    return leases


def lease_new(attempt: Attempt, pending: Pending, *, owner: str, actor: Actor, at: datetime) -> DispatchIntent:
    """Leases an attempt that is allowed and not yet stored; lease and intent are written with it. The lease has no end.
    The caller's transaction has the send lock."""
    attempt.lease_owner, attempt.lease_token, attempt.tries = owner, 1, 1
    attempt.next_eligible_at = attempt.lease_expires_at = None
    crash_point("after_lease")
    intent = _intent(attempt, _effect_chain(attempt).key, at)
    pending.add(intent, *_entries(attempt, intent, actor=actor, at=at))
    return intent


def _take(owner: str, selection: Selection, limit: int, seconds: float | None) -> Sequence[Attempt]:
    parameters: dict[str, Any] = {"owner": owner, "limit": limit, "seconds": seconds} | selection.parameters
    with connection.cursor() as cursor:
        cursor.execute(LEASE.format(which=selection.which), parameters)
        ids = [row[0] for row in cursor.fetchall()]
    if not ids:
        return []
    rows = Attempt.objects.filter(id__in=ids).select_related("organization", "decision")
    # The re-checks read only the request of the decision. Environment and results are its largest columns.
    return list(rows.defer("decision__environment", "decision__results").order_by("id"))


def _intent(attempt: Attempt, effect_key: str, at: datetime) -> DispatchIntent:
    effect = effect_in_force(adapter=attempt.connector, effect=attempt.effect)
    return new_row(
        DispatchIntent,
        id=uuid7(),
        attempt_id=attempt.id,
        number=attempt.tries,
        fence=attempt.lease_token,
        once=effect == Effect.ONCE,
        adapter=attempt.connector,
        effect_key=effect_key,
        action_digest=attempt.action_digest,
        executor_ref=attempt.lease_owner,
        at=at,
    )


def _entries(attempt: Attempt, intent: DispatchIntent, *, actor: Actor, at: datetime) -> list[LedgerEntry]:
    leased = {"fence": attempt.lease_token, "owner": attempt.lease_owner}
    dispatched = {
        "intent": str(intent.id),
        "number": intent.number,
        "fence": intent.fence,
        "adapter": intent.adapter,
        "effect_key": intent.effect_key,
        "digest": intent.action_digest,
    }
    return [
        entry_build(attempt, "attempt.leased", actor=actor, at=at, payload=leased),
        entry_build(attempt, "attempt.dispatched", actor=actor, at=at, payload=dispatched),
    ]
