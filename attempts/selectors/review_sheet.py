"""What a card shows beyond the API's: who is behind the request, a way back if any, how similar ones ended."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from attempts.models import Attempt, Review, ReviewVote
from attempts.selectors.review_card import Card, review_card
from attempts.selectors.review_queue import Reader
from attempts.states import ReviewKind
from governance.models import Contract
from governance.selectors import contract_documents, people_behind
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_choices

SEARCHED = 500
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
    compensation: str
    """The contract by which people may compensate, as `slug/version`; empty when none is declared."""
    why_me: list[str]
    """The person's own or lent tiers among those that must sign."""
    similar: list[Similar]
    refusals: list[ReasonCode]
    """What may be chosen for a rejection or a decline."""


def review_sheet(*, actor: Actor, reader: Reader, review_id: UUID) -> Sheet:
    card = review_card(actor=actor, review_id=review_id)
    review, attempt = card.review, card.attempt
    contract = attempt.contract if attempt is not None else None
    mine = reader.tiers_in(review.organization_id)
    scope = Scope.DENIAL if review.kind == ReviewKind.RELEASE else Scope.HUMAN_DECLINE
    return Sheet(
        card=card,
        contract=contract,
        compensation=_compensation(contract) if contract is not None else "",
        why_me=[part["tier"] for part in review.parts if part["tier"] in mine],
        similar=similar_reviews(review=review, attempt=attempt),
        refusals=reason_code_choices(organization_id=review.organization_id, scope=scope),
    )


def _compensation(contract: Contract) -> str:
    named = contract_documents(contract=contract)["failure_quarantine"].get("compensation_contract")
    return str(named) if named else ""


def similar_reviews(*, review: Review, attempt: Attempt | None) -> list[Similar]:
    """Of the same contract and operation, or of the same step's label; among the organization's newest ended ones, so
    that the card does not cost more as the record grows."""
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
