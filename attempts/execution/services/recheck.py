"""What must still hold at the moment of sending, asked again under the row's lock and the send lock. A deny wins."""

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
from governance.enforcement.selectors.arrival import IntakeFacts, intake_facts
from governance.enforcement.sql import Closed

LONGEST_CHAIN = 50


@dataclass(frozen=True, slots=True)
class EffectChain:
    """An attempt and those that it tries again. All of them are the same side effect, so they share one key."""

    attempt_ids: tuple[UUID, ...]

    @property
    def key(self) -> str:
        return f"hp-{self.attempt_ids[-1]}"


def effect_chain(attempt: Attempt) -> EffectChain:
    """Through `retry_of`, while the earlier one failed: a replay of what completed or was denied is a new effect."""
    ids, earlier_id = [attempt.id], attempt.retry_of_id
    while earlier_id is not None and len(ids) < LONGEST_CHAIN:
        earlier = Attempt.objects.filter(id=earlier_id).values_list("state", "retry_of_id").first()
        if earlier is None or earlier[0] != AttemptState.QUARANTINED:
            break
        ids.append(earlier_id)
        earlier_id = earlier[1]
    return EffectChain(tuple(ids))


def _success_already(*, chain: EffectChain) -> Receipt | None:
    """Late evidence counts too: whoever sent it had a lease, and acting twice is worse than not acting."""
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
    """HOLD leaves the attempt as it is; DENY ends it; UNRESOLVED and DONE come from the record."""

    go: Go
    reason_code: str = ""
    chain: EffectChain | None = None
    receipt: Receipt | None = None


@dataclass(slots=True)
class Rechecks:
    """For one lease statement: what several attempts share is read once."""

    _facts: dict[tuple[UUID, str, int], IntakeFacts | None] = field(default_factory=dict)

    def of(self, attempt: Attempt) -> Recheck:
        """`attempt` comes with organization and decision; its `tries` counts the execution that is asked for."""
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
        if contract.state == ContractState.RETIRED:  # for good, so waiting is of no use
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
    """What people released goes out only while they could still release it: a role taken since then takes the release
    with it. What no rule held needs nobody."""
    if attempt.decision.verdict != Verdict.NEEDS_APPROVAL:
        return True
    review = attempt_review(attempt=attempt)
    return review is not None and approval_stands(review=review, attempt=attempt, now=database_now())


def _digest_unchanged(attempt: Attempt) -> bool:
    """What was decided on, what was approved and what would be sent now are the same action."""
    action = attempt.decision.request["action"]
    if action_digest(action) != attempt.action_digest:
        return False
    empty: dict[str, list[str]] = {"fields": []}
    return all((action.get(name) or empty.get(name, "")) == getattr(attempt, name) for name in ACTION_COLUMNS)


def _earlier_tries_resolved(attempt: Attempt) -> bool:
    """Every intent has its receipt, and there is none at all where only one is ever allowed."""
    if effect_in_force(adapter=attempt.connector, effect=attempt.effect) == Effect.ONCE:
        return False
    answered = Receipt.objects.filter(attempt_id=attempt.id, late=False).values("intent_id")
    return not DispatchIntent.objects.filter(attempt_id=attempt.id).exclude(id__in=answered).exists()
