"""What is checked again before an act, under the locks: doors that have closed, the digest, earlier tries, enforcement
with what is in force now, and whether the approval still suffices. A deny wins over an earlier approval."""

# Nine evaluators run again, all of them. Throttle and slot were taken when the request came in and are not taken twice.
# A closed door (contract, organization, caller, shutdown) is no decision, as at intake: the attempt waits, and nothing
# is recorded, however often it is asked again.

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.db.models import Exists, OuterRef

from attempts.execution.adapters.base import effect_in_force
from attempts.execution.configured import deployment_region
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.rules import window_is_over
from attempts.execution.services.outcome import CONTRADICTED
from attempts.execution.states import ReceiptOutcome
from attempts.intake.rules import action_digest
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.states import InvestigatedOutcome
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.selectors.standing import approval_stands
from attempts.reviews.states import ReviewStatus
from governance.boundary.rules import facts_stated
from governance.contracts.states import ContractState, Effect
from governance.enforcement.models import facts_declared
from governance.enforcement.rules import Verdict, approval_document
from governance.enforcement.selectors import IntakeFacts, intake_facts
from governance.enforcement.services import Act, Computed, decision_recompute
from governance.enforcement.sql import Closed
from governance.people.models import ServiceAccount
from governance.policies.rules.demand import covers, demand_in, demand_of

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


class Go(StrEnum):
    SEND = "send"
    HOLD = "hold"
    REVIEW = "review"
    DENY = "deny"
    UNRESOLVED = "unresolved"
    DONE = "done"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class Recheck:
    """The answer. HOLD: not now, try again later. REVIEW: more approval is needed than was given. DENY: end it.
    UNRESOLVED: nobody knows what an earlier try did. DONE: the side effect has already happened, as `receipt` shows.
    QUEUED: it may be sent, and waits for a slot now."""

    go: Go
    reason_code: str = ""
    chain: EffectChain | None = None
    receipt: Receipt | None = None
    computed: Computed | None = None
    """The decision of this act, if it came to one."""
    trigger: str = "intent_without_receipt"
    """Of a quarantine, if it is UNRESOLVED."""


@dataclass(slots=True)
class Rechecks:
    """The re-checks of one lease statement. Contracts that several attempts share are read once."""

    # Kept only within one transaction that has the send lock: until its commit nothing that was read can be closed.

    at: datetime
    _facts: dict[tuple[UUID, str, int], IntakeFacts | None] = field(default_factory=dict)

    def of(self, attempt: Attempt) -> Recheck:
        """Checks one attempt, which comes with organization, caller and decision. `tries` includes the try that would
        start."""
        facts = self._read(attempt)
        if facts is None:
            return Recheck(Go.HOLD, "attempt_creation_disabled")
        if closed := _door_closed(facts, attempt):
            return Recheck(Go.HOLD, closed)
        if not _digest_unchanged(attempt, facts):
            return Recheck(Go.DENY, "effect_mismatch")
        chain = effect_chain(attempt)
        return (
            _earlier_tries(attempt, self.at) or _success_already(attempt, chain) or self._decide(attempt, facts, chain)
        )

    def _read(self, attempt: Attempt) -> IntakeFacts | None:
        key = (attempt.organization_id, attempt.workflow_slug, attempt.contract_version)
        if key not in self._facts:
            self._facts[key] = intake_facts(
                organization=attempt.organization, slug=attempt.workflow_slug, version=str(attempt.contract_version)
            )
        return self._facts[key]

    def _decide(self, attempt: Attempt, facts: IntakeFacts, chain: EffectChain) -> Recheck:
        computed = decision_recompute(
            act=Act(_act_of(attempt), attempt.id, attempt.decision),
            caller_status=attempt.caller.status,
            intake=facts,
            at=self.at,
            deployment_region=deployment_region(),
        )
        decision = computed.decision
        if decision.verdict is Verdict.DENY:
            return Recheck(Go.DENY, decision.reason_code or "policy_denied", computed=computed)
        demanded, was_held = decision.verdict is Verdict.NEEDS_APPROVAL, _was_held(attempt)
        standing = _standing(attempt) if demanded or was_held else []
        if was_held and not standing:
            return Recheck(Go.DENY, "approver_standing_lost", computed=computed)
        asked = demand_in(approval_document(decision.approval) or {}) if demanded else {}
        if demanded and not any(covers(demand_of(review.parts), asked) for review in standing):
            return Recheck(Go.REVIEW, decision.reason_code or "review_required", computed=computed)
        return Recheck(Go.SEND, chain=chain, computed=computed)


def _act_of(attempt: Attempt) -> str:
    if attempt.tries > 1:
        return "retry"
    return "dispatch" if attempt.origin_step is not None else "lease"


def _door_closed(facts: IntakeFacts, attempt: Attempt) -> str:
    """The reason code of what may open again; empty if nothing is closed. A retired contract never opens again, and
    enforcement denies it."""
    contract, closed = facts.contract, facts.closed_by
    if contract.state == ContractState.RETIRED:
        return ""
    if Closed.STATE in closed:
        return contract.closed_reason_code or "contract_suspended"
    if Closed.ORGANIZATION in closed:
        return "attempt_creation_disabled"
    if attempt.caller.status != ServiceAccount.Status.ACTIVE:
        return "misuse_suspended"
    return (facts.stopped_by or "") if Closed.SHUTDOWN in closed else ""


def _was_held(attempt: Attempt) -> bool:
    return bool(attempt.decision.verdict == Verdict.NEEDS_APPROVAL)


def _standing(attempt: Attempt) -> list[Review]:
    """The approvals of this attempt that still count."""
    # Nobody would accept "approved by somebody who is no longer a reviewer". Revoking a role takes the send lock
    # exclusively, so the role cannot be lost between this check and the intent.
    reviews = Review.objects.filter(attempt=attempt, status=ReviewStatus.APPROVED).order_by("-id")
    now = database_now()
    return [review for review in reviews if approval_stands(review=review, attempt=attempt, now=now)]


ACTION_COLUMNS = ("connector", "operation", "target_ref", "risk_tier", "payload_ref", "payload_sha256", "fields")


def _digest_unchanged(attempt: Attempt, read: IntakeFacts) -> bool:
    """Whether the action that was decided and approved, with its facts, is the one that would be sent now."""
    # The adapter reads the columns, people approved the digest: a changed column would send what nobody approved.
    request, declared = attempt.decision.request, facts_declared(read.contract.snapshot_sha256)
    action, stated = request["action"], facts_stated(declared, request.get("metadata", {}))
    if action_digest(action, facts=stated) != attempt.action_digest:
        return False
    if facts_stated(declared, attempt.metadata) != stated:
        return False
    empty: dict[str, list[str]] = {"fields": []}
    return all((action.get(name) or empty.get(name, "")) == getattr(attempt, name) for name in ACTION_COLUMNS)


def _earlier_tries(attempt: Attempt, at: datetime) -> Recheck | None:
    """What forbids another try: one without an answer, an effect that happens once, or the end of the window."""
    if attempt.tries == 1:
        return None
    # Every earlier intent has its receipt. For effect `once` a second try is never allowed.
    answered = Receipt.objects.filter(intent_id=OuterRef("id"), attempt_id=attempt.id, late=False)
    intents = list(
        DispatchIntent.objects.filter(attempt_id=attempt.id)
        .order_by("number")
        .annotate(answered=Exists(answered))
        .values_list("at", "answered")
    )
    once = effect_in_force(adapter=attempt.connector, effect=attempt.effect) == Effect.ONCE
    if once or not all(known for _, known in intents):
        return Recheck(Go.UNRESOLVED, "outcome_unknown")
    window = timedelta(seconds=documents_of(attempt)["retry_and_replay"]["window_seconds"])
    if intents and window_is_over(first_at=intents[0][0], window=window, at=at):
        return Recheck(Go.DENY, "retry_window_passed")
    return None


def _success_already(attempt: Attempt, chain: EffectChain) -> Recheck | None:
    """A success of an earlier try or attempt: nothing is sent. A late report is evidence for a person and settles
    nothing; it no longer counts when a person has judged the attempt since."""
    if attempt.tries == 1 and len(chain.attempt_ids) == 1:
        return None
    rows = Receipt.objects.filter(attempt_id__in=chain.attempt_ids, outcome=ReceiptOutcome.SUCCESS)
    judged = QuarantineCase.objects.filter(
        attempt_id__in=chain.attempt_ids,
        finding=InvestigatedOutcome.DID_NOT_HAPPEN,
        resolved_at__gte=OuterRef("at"),
    )
    found = rows.exclude(Exists(judged), late=True).order_by("late", "id").first()
    if found is None:
        return None
    if found.late:
        return Recheck(Go.UNRESOLVED, "outcome_unknown", trigger=CONTRADICTED)
    return Recheck(Go.DONE, receipt=found)
