"""The card of a review as people read it: what is asked and by whom, why it is held, who may decide, similar reviews.

It takes no locks: a vote checks everything again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import attempt_decision, compensation_of, reversibility
from attempts.reviews.errors import TierComplete
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.rules import WORDS, AskedAction, Exclusion, excluded_people
from attempts.reviews.selectors.queue import Reader
from attempts.reviews.selectors.reviews import (
    VoteSigned,
    claimed_by_other,
    database_now,
    release_blocked,
    review_asks_signature,
    review_get,
    review_overdue,
    signature_needed,
    votes_signed,
)
from attempts.reviews.selectors.standing import (
    ReviewStanding,
    members,
    progress_of,
    refusal_of,
    standing_of,
    votes_covered,
)
from attempts.reviews.states import VERDICTS_OF, ReviewKind, ReviewStatus, VoteVerdict
from governance.boundary.rules import ShownFact, facts_shown
from governance.boundary.rules.forms import FormField, form_fields, values_shown
from governance.contracts.models import Contract
from governance.contracts.states import SignatureKind
from governance.enforcement.models import EnforcementDecision, snapshot_load
from governance.enforcement.rules import results_from_document
from governance.enforcement.selectors import decision_get
from governance.people.selectors.people import people_behind
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.codes import Scope
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_choices

HIGH = "high"
NEW_KEY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TaskShown:
    """What a step of a workflow asks of people."""

    title: str
    facts: list[ShownFact]
    form: dict[str, Any]
    fields: tuple[FormField, ...]
    outcomes: list[str]
    due_at: datetime | None
    past_due: bool
    assigned_to: str | None
    approvals: int


@dataclass(frozen=True, slots=True)
class Card:
    review: Review
    attempt: Attempt | None
    overdue: bool
    asked: AskedAction | None
    task: TaskShown | None
    why_held: dict[str, Any] | None
    quorum: dict[str, Any]
    excluded: list[dict[str, Any]]
    claim: dict[str, Any] | None
    may_decide: dict[str, Any]
    release_blocked: str | None
    votes: list[dict[str, Any]]
    signature: SignatureKind
    """How votes are signed here."""


def review_card(*, actor: Actor, review_id: UUID) -> Card:
    review = review_get(review_id=review_id)
    attempt, now = review.attempt, database_now()
    person = actor.id if actor.kind is ActorKind.PERSON else None
    standing = standing_of(review=review, attempt=attempt, person=person, now=now)
    waits = review.status == ReviewStatus.REQUESTED
    decision = _decision(review, attempt) if attempt is not None else None
    return Card(
        review=review,
        attempt=attempt,
        overdue=review_overdue(review, now),
        asked=asked_action(attempt=attempt, decision=decision) if attempt is not None and decision else None,
        task=_task(review, now),
        why_held=_why_held(decision) if decision is not None else None,
        quorum=_quorum(review, standing),
        excluded=_excluded(review, standing),
        claim=_claim(review, now),
        may_decide=_may_decide(review, attempt, standing, now),
        release_blocked=release_blocked(attempt=attempt) if waits and attempt is not None else None,
        votes=_votes(review),
        signature=SignatureKind.PASSKEY if signature_needed(review=review, attempt=attempt) else SignatureKind.NONE,
    )


def _task(review: Review, now: datetime) -> TaskShown | None:
    if review.task is None:
        return None
    task, due = review.task, review.task["due_at"]
    due_at = datetime.fromisoformat(due) if due else None
    names = people_behind(commitments={task["assigned"]}) if task["assigned"] else {}
    return TaskShown(
        title=task["title"],
        facts=values_shown(task["facts"]),
        form=task["form"],
        fields=form_fields(task["form"]),
        outcomes=task["outcomes"],
        due_at=due_at,
        past_due=due_at is not None and due_at <= now and review.status == ReviewStatus.REQUESTED,
        assigned_to=names.get(task["assigned"], "erased") if task["assigned"] else None,
        approvals=review.approvals_required,
    )


def needs_fresh_proof(*, actor: Actor, review_id: UUID) -> bool:
    """Whether a person must sign in again before deciding: the action has high risk, and the vote would count. Where
    votes are signed, the signature proves more."""
    # A person who may not decide is not asked to sign in: the service refuses the vote and records the violation.
    if not Review.objects.filter(id=review_id, attempt__risk_tier=HIGH).exists():
        return False
    if review_asks_signature(review_id=review_id):
        return False
    return bool(review_card(actor=actor, review_id=review_id).may_decide["allowed"])


def needs_signature(*, actor: Actor, review_id: UUID) -> bool:
    """Whether the person's vote would count and has to be signed."""
    if not review_asks_signature(review_id=review_id):
        return False
    return bool(review_card(actor=actor, review_id=review_id).may_decide["allowed"])


def _decision(review: Review, attempt: Attempt) -> EnforcementDecision:
    """The decision that asked for this review: about the request, or later before an act."""
    if review.decision_id is None:
        return attempt_decision(attempt=attempt)
    return decision_get(decision_id=review.decision_id)


def _why_held(decision: EnforcementDecision) -> dict[str, Any]:
    """The policy rule that held the attempt, with the explanation of the policy evaluator."""
    return {
        "decision_id": decision.id,
        "reason_code": decision.reason_code,
        "rule_id": decision.rule_id,
        "policy_version": decision.policy_version,
        "explanation": policy_explanation(decision),
        "rationale": rule_description(decision),
    }


def asked_action(*, attempt: Attempt, decision: EnforcementDecision) -> AskedAction:
    """Reads the attempt's contract; the caller selects it with the attempt where there are many."""
    declared = decision.facts_declared
    names = {fact.name for fact in declared}
    return AskedAction(
        connector=attempt.connector,
        operation=attempt.operation,
        target_ref=attempt.target_ref,
        fields=tuple(attempt.fields),
        effect=attempt.effect,
        risk_tier=attempt.risk_tier,
        payload_ref=attempt.payload_ref,
        payload_sha256=attempt.payload_sha256,
        reversibility=reversibility(effect=attempt.effect, compensation=compensation_of(attempt)),
        facts=tuple(facts_shown(declared, attempt.metadata)),
        metadata={name: value for name, value in attempt.metadata.items() if name not in names},
        why=" ".join(filter(None, [rule_description(decision), policy_explanation(decision)])),
        rule_id=decision.rule_id,
        policy_version=decision.policy_version,
    )


def policy_explanation(decision: EnforcementDecision) -> str:
    """What the policy evaluator says, in words."""
    words = [row.explanation for row in results_from_document(decision.results) if row.evaluator == "policy"]
    return words[0] if words else ""


def rule_description(decision: EnforcementDecision) -> str:
    """What the author of the rule that held it wrote about it, in the version that decided."""
    sha256 = decision.environment.get("policy_sha256")
    rules: list[dict[str, Any]] = snapshot_load(sha256)["rules"] if sha256 else []
    return next((row.get("description") or "" for row in rules if row["id"] == decision.rule_id), "")


def _quorum(review: Review, standing: ReviewStanding) -> dict[str, Any]:
    quorum = standing.quorum
    return {
        "approvals_required": quorum.required,
        "approvals": quorum.approvals,
        "missing": quorum.missing,
        "by_tier": progress_of(review=review, facts=standing.facts),
    }


def _excluded(review: Review, standing: ReviewStanding) -> list[dict[str, Any]]:
    """Excluded people and why. Only people of this organization are named."""
    reasons = excluded_people(standing.facts)
    names = members(organization_id=review.organization_id, people=reasons)
    return [
        {"username": names.get(person), "reason": reason.value, "detail": WORDS[reason]}
        for person, reason in reasons.items()
    ]


def _claim(review: Review, now: datetime) -> dict[str, Any] | None:
    if not claimed_by_other(review, person=None, now=now) or review.claimed_by is None:
        return None
    return {"username": review.claimed_by.username, "until": review.claimed_until}


def _may_decide(review: Review, attempt: Attempt | None, standing: ReviewStanding, now: datetime) -> dict[str, Any]:
    """The answer that a vote would get now, apart from the check of its digest."""
    if standing.person is None:
        return _may_not("not_a_person", "Only people decide.")
    refusal = refusal_of(review=review, attempt=attempt, standing=standing, now=now)
    if refusal is not None:
        excluded = standing.mandate if isinstance(standing.mandate, Exclusion) else None
        reason = excluded.value if excluded else refusal.code.replace("-", "_")
        return _may_not(reason, refusal.detail)
    return {
        "allowed": True,
        "verdicts": _verdicts(review, standing),
        "reason": None,
        "detail": "Your vote counts." if review.task or standing.approval_helps else TierComplete.summary(),
        "on_behalf_of": None,
        "stands_in_for": _represented(review, standing),
    }


def _verdicts(review: Review, standing: ReviewStanding) -> list[str]:
    known = [verdict.value for verdict in VERDICTS_OF[ReviewKind(review.kind)]]
    return [verdict for verdict in known if verdict != VoteVerdict.APPROVE or standing.approval_helps]


def _may_not(reason: str, detail: str) -> dict[str, Any]:
    return {
        "allowed": False,
        "verdicts": [],
        "reason": reason,
        "detail": detail,
        "on_behalf_of": None,
        "stands_in_for": [],
    }


def _represented(review: Review, standing: ReviewStanding) -> list[str]:
    people = {row.by for row in standing.stands_in}
    return sorted(members(organization_id=review.organization_id, people=people).values()) if people else []


def _votes(review: Review) -> list[dict[str, Any]]:
    # Votes name people by commitments. If a commitment was erased, nobody can say any more whose vote it was.
    votes = list(ReviewVote.objects.filter(review=review).select_related("note").order_by("id"))
    names = people_behind(commitments={ref for vote in votes for ref in (vote.voter_ref, vote.on_behalf_of_ref) if ref})
    covered = votes_covered(review=review, votes=votes)
    signed = votes_signed(votes=votes)
    return [
        {
            "id": vote.id,
            "verdict": vote.verdict,
            "voter": names.get(vote.voter_ref, "erased"),
            "on_behalf_of": names.get(vote.on_behalf_of_ref, "erased") if vote.on_behalf_of_ref else None,
            "stands_in_for": covered[vote.id],
            "reason_code": vote.reason_code,
            "result_ref": vote.result_ref,
            "result_sha256": vote.result_sha256,
            "outcome": vote.outcome,
            "form": vote.form,
            "note": vote.note.text if vote.note else None,
            "action_digest": vote.action_digest,
            "at": vote.at,
            "signature": _signature(vote, signed.get(vote.id)),
        }
        for vote in votes
    ]


def _signature(vote: ReviewVote, found: VoteSigned | None) -> dict[str, Any] | None:
    """None: the vote is unsigned. `new_key`: the passkey was registered within a day before the vote, as that of
    somebody who took over a sign-in would be."""
    if found is None:
        return None
    return {
        "signed_by_person": found.by_person,
        "passkey_registered_at": found.registered_at,
        "registered_entry": found.registered_entry,
        "new_key": vote.at - found.registered_at < NEW_KEY,
    }


SEARCHED = 500  # without a limit the card would cost more as the record grows
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Similar:
    """An earlier review of the same kind of request."""

    review: Review
    who: str
    reason_code: str


@dataclass(frozen=True, slots=True)
class Sheet:
    card: Card
    contract: Contract | None
    why_me: list[str]
    """The person's tiers among those that must approve."""
    similar: list[Similar]
    refusals: list[ReasonCode]
    """The reason codes for a rejection or a decline."""


def review_sheet(*, actor: Actor, reader: Reader, review_id: UUID) -> Sheet:
    card = review_card(actor=actor, review_id=review_id)
    review, attempt = card.review, card.attempt
    contract = attempt.contract if attempt is not None else None
    mine = reader.tiers_in(review.organization_id)
    scope = Scope.DENIAL if review.kind == ReviewKind.RELEASE else Scope.HUMAN_DECLINE
    return Sheet(
        card=card,
        contract=contract,
        why_me=[part["tier"] for part in review.parts if part["tier"] in mine],
        similar=_similar_reviews(review=review, attempt=attempt),
        refusals=reason_code_choices(organization_id=review.organization_id, scope=scope),
    )


def _similar_reviews(*, review: Review, attempt: Attempt | None) -> list[Similar]:
    """Ended reviews of the same contract and operation, or of the same label of a step, among the organization's newest
    ended ones."""
    ended = Review.objects.filter(organization_id=review.organization_id, decided_at__isnull=False)
    newest = ended.order_by("-decided_at", "-id").values("id")[:SEARCHED]
    rows = Review.objects.filter(id__in=newest).exclude(id=review.id)
    if attempt is not None:
        rows = rows.filter(attempt__workflow_slug=attempt.workflow_slug, attempt__operation=attempt.operation)
    else:
        rows = rows.filter(kind=review.kind, label=review.label)
    found = list(rows.select_related("attempt").order_by("-decided_at", "-id")[:SHOWN])
    return _with_last_vote(found)


def _with_last_vote(reviews: list[Review]) -> list[Similar]:
    votes: dict[Any, ReviewVote] = {
        vote.review_id: vote for vote in ReviewVote.objects.filter(review__in=reviews).order_by("id")
    }
    names = people_behind(commitments={vote.voter_ref for vote in votes.values()})
    return [
        Similar(
            review,
            names.get(votes[review.id].voter_ref, "erased") if review.id in votes else "the clock",
            votes[review.id].reason_code if review.id in votes else "",
        )
        for review in reviews
    ]
