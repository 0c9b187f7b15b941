"""The card of a review: the page, the card alone, and the part that is refreshed while a person reads."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from attempts.reviews.selectors.card import HIGH, Card, review_sheet
from attempts.reviews.selectors.queue import QueueFilter, Reader, reader_of
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.states import ReviewStatus, VoteVerdict
from attempts.reviews.web.base import ReviewPage, etag_of, hold_back_seconds, is_htmx, live, unless_known
from attempts.reviews.web.panels import panels_of
from attempts.reviews.web.queue import query_of, queue_context, wanted_from
from governance.contracts.states import SignatureKind
from governance.people.selectors.sign_in import passkeys_usable
from governance.people.web.accounts import rp_id_of, signed_in_recently
from governance.sealing.services.read_audit import read_recorded
from governance.sealing.states import ReadDoor
from reasoncodes.base.actors import Actor


def _card_context(
    request: HttpRequest, *, actor: Actor, reader: Reader, review_id: UUID, wanted: QueueFilter, now: datetime
) -> dict[str, Any]:
    sheet = review_sheet(actor=actor, reader=reader, review_id=review_id)
    card = sheet.card
    return {
        "sheet": sheet,
        "card": card,
        "review": card.review,
        "attempt": card.attempt,
        "panels": panels_of(review=card.review, attempt=card.attempt),
        "query": query_of(wanted),
        "open_id": review_id,
        "covered": reader.covered_in(card.review),
        "mine": card.claim is not None and card.claim["username"] == request.user.get_username(),
        "answers_key": answers_key(card),
        "is_open": card.review.status == ReviewStatus.REQUESTED and not card.overdue,
        "ended_by": ended_by(card),
        "step_up": _warns_of_step_up(request, card, at=timezone.now()),
        "hold_back": hold_back_seconds(),
        "signs": card.signature == SignatureKind.PASSKEY,
        "my_passkeys": _own_passkeys(request, card),
        "zone": timezone.get_current_timezone_name(),
        "now": now,
    }


def card_opened(
    request: HttpRequest, *, actor: Actor, reader: Reader, review_id: UUID, wanted: QueueFilter, now: datetime
) -> dict[str, Any]:
    """The context of a card that a person opens. It is recorded in the read audit before it is shown; refreshes of an
    open page are not recorded."""
    context = _card_context(request, actor=actor, reader=reader, review_id=review_id, wanted=wanted, now=now)
    read_recorded(
        actor=actor,
        organization_id=context["review"].organization_id,
        subject_kind="review",
        subject_id=review_id,
        purpose="review",
        at=now,
        door=ReadDoor.CONSOLE,
    )
    return context


def _warns_of_step_up(request: HttpRequest, card: Card, *, at: datetime) -> bool:
    """Whether the card warns that deciding will need a fresh sign-in."""
    high = card.attempt is not None and card.attempt.risk_tier == HIGH
    return high and card.signature == SignatureKind.NONE and not signed_in_recently(request, at=at)


def _own_passkeys(request: HttpRequest, card: Card) -> list[datetime]:
    """When the reader's own passkeys were registered, where they would sign with one."""
    if card.signature == SignatureKind.NONE or not card.may_decide["allowed"]:
        return []
    user: Any = request.user
    return [one.known.registered_at for one in passkeys_usable(user_id=user.id, rp_id=rp_id_of(request))]


def answers_key(card: Card) -> str:
    """Changes if the form must be replaced."""
    # A claim or vote of a colleague alone does not change it: replacing the form would delete a note half written.
    word = card.may_decide
    return etag_of(card.review.status, card.overdue, card.review.action_digest, word, card.release_blocked)


def ended_by(card: Card) -> str:
    """Who decided, in words; empty while the review is open."""
    review, votes = card.review, card.votes
    denied = "the workflow goes on without an answer." if card.task else "it is denied. Expiry never approves."
    if review.status == ReviewStatus.REQUESTED:
        return f"The deadline has passed, so {denied}" if card.overdue else ""
    if review.status == ReviewStatus.EXPIRED:
        return f"Nobody decided in time, so {denied}"
    if review.status == ReviewStatus.CANCELED or not votes:
        return "It ended without a decision: the caller cancelled it, or the workflow continued without it."
    names = [vote["voter"] for vote in votes if vote["verdict"] != VoteVerdict.DECLINE]
    if votes[-1]["outcome"] and card.task:
        return f"Decided: {votes[-1]['outcome'].replace('_', ' ')}, by {votes[-1]['voter']}."
    return f"{review.status.capitalize()} by {' and '.join(names) or 'somebody'}."


class CardPage(ReviewPage):
    """Shows a card. GET never decides."""

    def get(self, request: HttpRequest, review_id: UUID) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = card_opened(request, actor=self.actor, reader=reader, review_id=review_id, wanted=wanted, now=now)
        if is_htmx(request):
            return render(request, "review/parts/card.html", context)
        around = queue_context(reader=reader, wanted=wanted, now=now)
        return render(request, "review/queue.html", around | context)


class CardLive(ReviewPage):
    def get(self, request: HttpRequest, review_id: UUID) -> HttpResponse:
        now = database_now()
        reader, wanted = reader_of(actor=self.actor, now=now), wanted_from(request.GET)
        context = _card_context(request, actor=self.actor, reader=reader, review_id=review_id, wanted=wanted, now=now)
        card: Card = context["card"]
        etag = etag_of(context["answers_key"], card.quorum, card.votes, card.claim, card.excluded)
        return unless_known(request, etag) or live(render(request, "review/parts/live.html", context), etag)
