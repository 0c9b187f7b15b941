"""The card of a review: what is asked, by whom, why it is held, who may decide. Read by people; it decides nothing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from attempts.models import Attempt, Review, ReviewVote
from attempts.review_rules import WORDS, Exclusion, Quorum, excluded_people
from attempts.selectors.attempt import attempt_decision
from attempts.selectors.review import claimed_by_other, database_now, release_blocked, review_get
from attempts.selectors.review_standing import Standing, members, refusal_of, standing_of
from attempts.states import ReviewStatus
from governance.enforcement import results_from_document
from governance.models import EnforcementDecision
from governance.selectors import people_behind
from reasoncodes.actors import Actor, ActorKind


@dataclass(frozen=True, slots=True)
class Card:
    review: Review
    attempt: Attempt
    overdue: bool
    why_held: dict[str, Any]
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
        overdue=waits and review.expires_at <= now,
        why_held=_why_held(attempt_decision(attempt=attempt)),
        quorum=_quorum(review, standing.quorum),
        excluded=_excluded(review, standing),
        claim=_claim(review, now),
        may_decide=_may_decide(review, attempt, standing, now),
        release_blocked=release_blocked(attempt=attempt) if waits else None,
        votes=_votes(review),
    )


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


def _quorum(review: Review, quorum: Quorum) -> dict[str, Any]:
    count = {"approvals_required": quorum.required, "approvals": quorum.approvals, "missing": quorum.missing}
    return count | {"by_tier": [{"tier": review.tier} | count]}


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


def _may_decide(review: Review, attempt: Attempt, standing: Standing, now: datetime) -> dict[str, Any]:
    """The answer that a vote would get now, short of the digest that it carries."""
    if standing.person is None:
        return {"allowed": False, "reason": "not_a_person", "detail": "Only people decide.", "on_behalf_of": None}
    refusal = refusal_of(review=review, attempt=attempt, standing=standing, now=now)
    if refusal is not None:
        excluded = standing.authority if isinstance(standing.authority, Exclusion) else None
        reason = excluded.value if excluded else refusal.code.replace("-", "_")
        return {"allowed": False, "reason": reason, "detail": refusal.detail, "on_behalf_of": None}
    return {
        "allowed": True,
        "reason": None,
        "detail": "Your word counts.",
        "on_behalf_of": _represented(review, standing),
    }


def _represented(review: Review, standing: Standing) -> str | None:
    if isinstance(standing.authority, Exclusion) or standing.authority == standing.person:
        return None
    names = members(organization_id=review.organization_id, people=[standing.authority])
    return names.get(standing.authority)


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
            "note": vote.note.text if vote.note else None,
            "action_digest": vote.action_digest,
            "at": vote.at,
        }
        for vote in votes
    ]
