"""Leases. One conditional UPDATE takes the lease. Everything is checked and decided again under the locks (`recheck`);
decision and intent commit with the lease. A growing fence makes older leases worthless."""

# Lease and intent are one commit. With a later intent there would be leases of which nobody knows whether something
# was sent under them. The fence grows with every lease, so that a report under an older one is refused.
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from attempts.execution.adapters.base import effect_in_force
from attempts.execution.configured import crash_point
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.rules import LEASE_SECONDS
from attempts.execution.services.recheck import Go, Recheck, Rechecks, effect_chain
from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.hold import hold_again
from attempts.lifecycle.services.slots import slot_or_queue, slots_release
from attempts.lifecycle.services.transition import entry_build, transition_apply
from attempts.quarantine.services.open import attempt_refuse, quarantine_open
from attempts.quarantine.states import QuarantineCategory
from governance.contracts.states import Effect
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import decision_row
from governance.enforcement.sql import send_lock_share
from governance.ledger.models import LedgerEntry
from governance.sql.insert import Pending, insert_together
from governance.sql.statements import new_row
from reasoncodes.base.actors import Actor
from reasoncodes.base.ids import uuid7

# An attempt that may not be sent now becomes due again after this time. Without the wait it would stay the oldest due
# one, and batches would lease it again and again instead of those behind it.
LOOK_AGAIN_SECONDS = 15


def _refusal_apply(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime, tell: bool) -> None:
    """Takes the lease back and does what the re-check says. `attempt` is locked and leased by this transaction. `tell`
    as in `transition_apply`. Go.HOLD leaves no record, because nothing has changed."""
    _undo(attempt)
    if checked.go in {Go.HOLD, Go.REVIEW} and hasattr(attempt, "slot"):
        # It waits, for people or for a contract to open: without its slot, which the next lease takes again.
        slots_release(attempt_id=attempt.id)
    decision = _decided(attempt, checked, actor=actor, at=at)
    match checked.go:
        case Go.DONE if checked.receipt is not None:
            _complete_from(attempt, checked.receipt, actor=actor, at=at, tell=tell)
        case Go.REVIEW if decision is not None:
            hold_again(attempt, decision, actor=actor, at=at)
        case Go.DENY:
            attempt_refuse(attempt, actor=actor, at=at, reason_code=checked.reason_code, tell=tell)
        case Go.UNRESOLVED:
            quarantine_open(
                attempt,
                actor=actor,
                at=at,
                category=QuarantineCategory.OUTCOME_UNKNOWN,
                reason_code="outcome_unknown",
                payload={"trigger": checked.trigger},
                tell=tell,
            )
        case _:
            pass


def _waits_for_slot(attempt: Attempt, *, actor: Actor, at: datetime) -> bool:
    """Takes the slot of a retry, or of an attempt that waited for something else; if there is none, it is queued."""
    queued = slot_or_queue(attempt, actor=actor, at=at)
    if queued is None:
        return False
    _undo(attempt)
    attempt.next_eligible_at = None
    attempt.save(update_fields=["queued_until", "next_eligible_at"])
    insert_together([queued])
    return True


def _decided(attempt: Attempt, checked: Recheck, *, actor: Actor, at: datetime) -> EnforcementDecision | None:
    """Stores the decision of an act that does not happen."""
    if checked.computed is None:
        return None
    decision = decision_row(computed=checked.computed, at=at)
    insert_together([decision], [_decision_entry(attempt, decision, actor=actor, at=at)])
    return decision


def _decision_entry(attempt: Attempt, decision: EnforcementDecision, *, actor: Actor, at: datetime) -> LedgerEntry:
    payload = {
        "decision": str(decision.id),
        "act": decision.act,
        "verdict": decision.verdict,
        "rule": decision.rule_id,
        "request_sha256": decision.request_sha256,
        "environment_sha256": decision.environment_sha256,
    }
    reason_code = decision.reason_code
    return entry_build(attempt, "attempt.decided", actor=actor, at=at, payload=payload, reason_code=reason_code)


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
    leases, rechecks = Leases(), Rechecks(at)
    with transaction.atomic():
        # Before everything that the re-checks read: otherwise a shutdown could commit between its being read as absent
        # and the commit of the intent, and something would be sent after "engaged" was answered.
        send_lock_share()
        attempts = _take(owner, selection, min(limit, LARGEST_BATCH), seconds)
        crash_point("after_lease")
        decisions: list[EnforcementDecision] = []
        entries: list[LedgerEntry] = []
        for attempt in attempts:
            checked = rechecks.of(attempt)
            if checked.go is Go.SEND and not hasattr(attempt, "slot") and _waits_for_slot(attempt, actor=actor, at=at):
                leases.refused.append((attempt.id, Recheck(Go.QUEUED, "concurrency_limit")))
                continue
            if checked.go is not Go.SEND:
                _refusal_apply(attempt, checked, actor=actor, at=at, tell=tell)
                leases.refused.append((attempt.id, checked))
                continue
            if checked.chain is None or checked.computed is None:
                raise ValueError("only what was checked and decided is sent")
            decision = decision_row(computed=checked.computed, at=at)
            intent = _intent(attempt, checked.chain.key, decision.id, at)
            leases.granted.append(Granted(attempt, intent))
            decisions.append(decision)
            entries += [
                _decision_entry(attempt, decision, actor=actor, at=at),
                *_entries(attempt, intent, actor=actor, at=at),
            ]
        insert_together(decisions, [granted.intent for granted in leases.granted], entries)
    return leases


def lease_new(attempt: Attempt, pending: Pending, *, owner: str, actor: Actor, at: datetime) -> DispatchIntent:
    """Leases an attempt that is allowed and not yet stored; lease and intent are written with it. The lease has no end.
    The caller's transaction has the send lock, and the decision of the intake is that of the dispatch: both are one
    transaction, so nothing can have changed between them."""
    attempt.lease_owner, attempt.lease_token, attempt.tries = owner, 1, 1
    attempt.next_eligible_at = attempt.lease_expires_at = None
    crash_point("after_lease")
    intent = _intent(attempt, effect_chain(attempt).key, attempt.decision_id, at)
    pending.add(intent, *_entries(attempt, intent, actor=actor, at=at))
    return intent


def _take(owner: str, selection: Selection, limit: int, seconds: float | None) -> Sequence[Attempt]:
    parameters: dict[str, Any] = {"owner": owner, "limit": limit, "seconds": seconds} | selection.parameters
    with connection.cursor() as cursor:
        cursor.execute(LEASE.format(which=selection.which), parameters)
        ids = [row[0] for row in cursor.fetchall()]
    if not ids:
        return []
    rows = Attempt.objects.filter(id__in=ids).select_related("organization", "decision", "caller", "slot")
    # The re-checks read request and environment of the decision. The results are a large column.
    return list(rows.defer("decision__results").order_by("id"))


def _intent(attempt: Attempt, effect_key: str, decision_id: UUID, at: datetime) -> DispatchIntent:
    effect = effect_in_force(adapter=attempt.connector, effect=attempt.effect)
    return new_row(
        DispatchIntent,
        id=uuid7(),
        attempt_id=attempt.id,
        decision_id=decision_id,
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
        "decided": str(intent.decision_id),
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
