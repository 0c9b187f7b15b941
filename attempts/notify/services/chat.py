"""Decisions through the chat: finds person and card, then calls the same service as the page. Also answers in the chat.

The chat can do less than the page: no actions of high risk, which need a fresh sign-in, and no human reviews.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from attempts.notify.adapters.mark import card_fits, card_read
from attempts.notify.adapters.slack import slack_call
from attempts.notify.errors import CallbackRefused, ChatNotLinked, DecidedOnThePage
from attempts.notify.models import ChatCallback, ChatIdentity, ChatWorkspace, Notification
from attempts.notify.rules.cards import reject_view
from attempts.notify.rules.delivery import Trouble
from attempts.notify.services.chat_workspace import connection_of
from attempts.notify.states import NotifyKind
from attempts.reviews.errors import StepUpNeeded
from attempts.reviews.models import Review
from attempts.reviews.services.decide import review_vote
from attempts.reviews.states import ReviewKind, VoteVerdict
from governance.contracts.states import RiskTier
from governance.people.rules.roles import VIEW
from governance.people.selectors.people import person_actor
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, NotFound

VIA = "slack"


@dataclass(frozen=True, slots=True)
class Clicked:
    """A click on a card: the linked person and the review."""

    actor: Actor
    review: Review
    action_digest: str
    """Empty if the card shows another action than the present one; the vote is then refused as changed."""


def callback_take(*, signature_sha256: str, at: datetime) -> None:
    """Accepts a callback once; a repetition is refused."""
    # One INSERT, committed before anything follows from it: of two identical callbacks at once, one inserts the row.
    # Without it a recorded callback could be sent again while its timestamp is accepted.
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {ChatCallback._meta.db_table} (signature_sha256, received_at) VALUES (%s, %s)"  # noqa: S608
            " ON CONFLICT DO NOTHING",
            [signature_sha256, at],
        )
        if cursor.rowcount != 1:
            raise CallbackRefused


def chat_click(*, workspace: ChatWorkspace, chat_user: str, value: str) -> Clicked:
    """Person and review of a click, in the scope of the workspace's organization. Only its own cards count."""
    actor = _actor(workspace, chat_user)
    read = card_read(value)
    if read is None:
        raise NotFound
    notification_id, mark = read
    review = _review(workspace, notification_id)
    where = {"review_id": str(review.id)}
    if review.kind != ReviewKind.RELEASE or review.attempt is None:
        raise DecidedOnThePage(extensions=where)
    if review.attempt.risk_tier == RiskTier.HIGH:
        raise StepUpNeeded(extensions=where)
    fits = card_fits(notification_id=notification_id, action_digest=review.action_digest, mark=mark)
    return Clicked(actor, review, review.action_digest if fits else "")


def chat_decide(
    *, clicked: Clicked, at: datetime, verdict: VoteVerdict, reason_code: str = "", note: str = ""
) -> Review:
    """Casts the vote. A refusal names the review, so that its text can link to the card."""
    try:
        return review_vote(
            actor=clicked.actor,
            at=at,
            review_id=clicked.review.id,
            verdict=verdict,
            action_digest=clicked.action_digest,
            reason_code=reason_code,
            note=note,
            via=VIA,
        )
    except DomainError as refusal:
        refusal.extensions["review_id"] = str(clicked.review.id)
        raise


def _actor(workspace: ChatWorkspace, chat_user: str) -> Actor:
    """The linked person as an actor in the workspace's organization only."""
    rows = ChatIdentity.objects.select_related("user")
    identity = rows.filter(workspace=workspace, chat_user=chat_user, user__is_active=True).first()
    if identity is None:
        raise ChatNotLinked
    actor = person_actor(user=identity.user, permission=VIEW)
    if not actor.may_act_in(workspace.organization_id):
        raise ChatNotLinked("You have no role in this organization any more, so nothing was decided.")
    return Actor(actor.kind, actor.id, frozenset({workspace.organization_id}))


def _review(workspace: ChatWorkspace, notification_id: UUID) -> Review:
    rows = Notification.objects.select_related("review__attempt")
    card = rows.filter(id=notification_id, kind=NotifyKind.CARD, route__workspace=workspace).first()
    if card is None:
        raise NotFound
    return card.review


log = structlog.get_logger("holdpoint.chat")
SECONDS = 2.0  # Slack waits three seconds for our answer, and these calls come before it


def chat_whisper(*, workspace: ChatWorkspace, channel: str, chat_user: str, text: str) -> None:
    _call(workspace, "chat.postEphemeral", {"channel": channel, "user": chat_user, "text": text})


def reject_form_open(
    *, workspace: ChatWorkspace, trigger_id: str, value: str, codes: Sequence[tuple[str, str]]
) -> bool:
    view = reject_view(value=value, codes=codes)
    return _call(workspace, "views.open", {"trigger_id": trigger_id, "view": view})


def _call(workspace: ChatWorkspace, method: str, body: dict[str, Any]) -> bool:
    connection = connection_of(workspace)
    outcome = (
        connection
        if isinstance(connection, Trouble)
        else slack_call(connection=connection, method=method, body=body, seconds=SECONDS)
    )
    if isinstance(outcome, Trouble):
        log.warning("chat_reply_failed", method=method, why=outcome.why, workspace_id=str(workspace.id))
        return False
    return True
