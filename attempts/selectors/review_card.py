"""The card of a review: what is asked, by whom, why it is held, who may decide. Read by people; it decides nothing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.models import Attempt, Review, ReviewVote
from attempts.review_errors import TierComplete
from attempts.review_rules import WORDS, Exclusion, excluded_people
from attempts.selectors.attempt import attempt_decision
from attempts.selectors.review import claimed_by_other, database_now, release_blocked, review_get
from attempts.selectors.review_people import progress_of
from attempts.selectors.review_standing import Standing, members, refusal_of, standing_of
from attempts.states import VERDICTS_OF, ReviewKind, ReviewStatus, VoteVerdict
from governance.enforcement import results_from_document
from governance.models import EnforcementDecision
from governance.selectors import people_behind
from reasoncodes.actors import Actor, ActorKind

HIGH = "high"


@dataclass(frozen=True, slots=True)
class Card:
    review: Review
    attempt: Attempt | None
    overdue: bool
    why_held: dict[str, Any] | None
    quorum: dict[str, Any]
    excluded: list[dict[str, Any]]
    claim: dict[str, Any] | None
    may_decide: dict[str, Any]
    release_blocked: str | None
    votes: list[dict[str, Any]]


def review_card(*, actor: Actor, review_id: UUID) -> Card:
    review = review_get(review_id=review_id)
    attempt, now = review.attempt, database_now()
    person = actor.id if actor.kind is ActorKind.PERSON else None
    standing = standing_of(review=review, attempt=attempt, person=person, now=now)
    waits = review.status == ReviewStatus.REQUESTED
    return Card(
        review=review,
        attempt=attempt,
        overdue=review.overdue(now),
        why_held=_why_held(attempt_decision(attempt=attempt)) if attempt is not None else None,
        quorum=_quorum(review, standing, now),
        excluded=_excluded(review, standing),
        claim=_claim(review, now),
        may_decide=_may_decide(review, attempt, standing, now),
        release_blocked=release_blocked(attempt=attempt) if waits and attempt is not None else None,
        votes=_votes(review),
    )


def needs_fresh_proof(*, actor: Actor, review_id: UUID) -> bool:
    """Whether this person's word would count here on an action of high risk. Who may not decide anyway is refused by
    the service, which puts it on record, rather than asked who they are."""
    if not Review.objects.filter(id=review_id, attempt__risk_tier=HIGH).exists():
        return False
    return bool(review_card(actor=actor, review_id=review_id).may_decide["allowed"])


def _why_held(decision: EnforcementDecision) -> dict[str, Any]:
    """The rule of the policy that asked for a person, in the policy evaluator's own words."""
    words = [row.explanation for row in results_from_document(decision.results) if row.evaluator == "policy"]
    return {
        "decision_id": decision.id,
        "reason_code": decision.reason_code,
        "rule_id": decision.rule_id,
        "policy_version": decision.policy_version,
        "explanation": words[0] if words else "",
    }


def _quorum(review: Review, standing: Standing, now: datetime) -> dict[str, Any]:
    quorum = standing.quorum
    return {
        "approvals_required": quorum.required,
        "approvals": quorum.approvals,
        "missing": quorum.missing,
        "by_tier": progress_of(review=review, facts=standing.facts, now=now),
    }


def _excluded(review: Review, standing: Standing) -> list[dict[str, Any]]:
    """By name where the person is in this organization, otherwise without one."""
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


def _may_decide(review: Review, attempt: Attempt | None, standing: Standing, now: datetime) -> dict[str, Any]:
    """The answer that a vote would get now, short of the digest that it carries."""
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
        "detail": "Your vote counts." if standing.approval_helps else TierComplete.summary(),
        "on_behalf_of": _represented(review, standing),
    }


def _verdicts(review: Review, standing: Standing) -> list[str]:
    known = [verdict.value for verdict in VERDICTS_OF[ReviewKind(review.kind)]]
    return [verdict for verdict in known if verdict != VoteVerdict.APPROVE or standing.approval_helps]


def _may_not(reason: str, detail: str) -> dict[str, Any]:
    return {"allowed": False, "verdicts": [], "reason": reason, "detail": detail, "on_behalf_of": None}


def _represented(review: Review, standing: Standing) -> str | None:
    mandate = standing.mandate
    if isinstance(mandate, Exclusion) or mandate.authority == standing.person:
        return None
    return members(organization_id=review.organization_id, people=[mandate.authority]).get(mandate.authority)


def _votes(review: Review) -> list[dict[str, Any]]:
    votes = list(ReviewVote.objects.filter(review=review).select_related("note").order_by("id"))
    names = people_behind(commitments={ref for vote in votes for ref in (vote.voter_ref, vote.on_behalf_of_ref) if ref})
    return [
        {
            "id": vote.id,
            "verdict": vote.verdict,
            "voter": names.get(vote.voter_ref, "erased"),
            "on_behalf_of": names.get(vote.on_behalf_of_ref, "erased") if vote.on_behalf_of_ref else None,
            "reason_code": vote.reason_code,
            "result_ref": vote.result_ref,
            "result_sha256": vote.result_sha256,
            "note": vote.note.text if vote.note else None,
            "action_digest": vote.action_digest,
            "at": vote.at,
        }
        for vote in votes
    ]
