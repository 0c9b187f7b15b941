"""Checks again, just before an intent is written, that the attempt may still be sent. The caller has the row lock and
the send lock. Nothing is written here."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from attempts.execution.adapters.registry import effect_in_force
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.states import ReceiptOutcome
from attempts.intake.rules import action_digest
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_review
from attempts.lifecycle.states import AttemptState
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.selectors.standing import approval_stands
from governance.contracts.states import ContractState, Effect
from governance.enforcement.rules import Verdict
from governance.enforcement.selectors import IntakeFacts, intake_facts
from governance.enforcement.sql import Closed

LONGEST_CHAIN = 50  # bounds the loop below, which costs one statement per link


@dataclass(frozen=True, slots=True)
class EffectChain:
    """An attempt and the failed ones that it retries. All are the same side effect, so they share one effect key."""

    attempt_ids: tuple[UUID, ...]

    @property
    def key(self) -> str:
        return f"hp-{self.attempt_ids[-1]}"


def effect_chain(attempt: Attempt) -> EffectChain:
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
        if not _digest_unchanged(attempt):
            return Recheck(Go.DENY, "effect_mismatch")
        if attempt.tries > 1 and not _earlier_tries_resolved(attempt):
            return Recheck(Go.UNRESOLVED, "outcome_unknown")
        chain = effect_chain(attempt)
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


def _signers_stand(attempt: Attempt) -> bool:
    """Whether those who approved a held attempt could still approve it. True for an attempt that was never held."""
    # Nobody would accept "approved by somebody who is no longer a reviewer". Revoking a role takes the send lock
    # exclusively, so the role cannot be lost between this check and the intent.
    if attempt.decision.verdict != Verdict.NEEDS_APPROVAL:
        return True
    review = attempt_review(attempt=attempt)
    return review is not None and approval_stands(review=review, attempt=attempt, now=database_now())


def _digest_unchanged(attempt: Attempt) -> bool:
    """Whether the action that was decided and approved is the one that would be sent now."""
    # The adapter reads the columns, people approved the digest: a changed column would send what nobody approved.
    action = attempt.decision.request["action"]
    if action_digest(action) != attempt.action_digest:
        return False
    empty: dict[str, list[str]] = {"fields": []}
    return all((action.get(name) or empty.get(name, "")) == getattr(attempt, name) for name in ACTION_COLUMNS)


def _earlier_tries_resolved(attempt: Attempt) -> bool:
    """Whether every earlier intent has its receipt. For effect `once` a second try is never allowed."""
    if effect_in_force(adapter=attempt.connector, effect=attempt.effect) == Effect.ONCE:
        return False
    answered = Receipt.objects.filter(attempt_id=attempt.id, late=False).values("intent_id")
    return not DispatchIntent.objects.filter(attempt_id=attempt.id).exclude(id__in=answered).exists()
