"""Refreshes cards in the chat after their review has changed: progress while it is open, struck through at its end."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import F, QuerySet

from attempts.notify.adapters.slack import slack_call
from attempts.notify.models import ChatWorkspace, Notification
from attempts.notify.rules.delivery import MOST_TRIES, Blame, Delivered, Trouble, wait_before
from attempts.notify.rules.facts import ReviewFacts
from attempts.notify.selectors import review_facts, signatures
from attempts.notify.services.chat_workspace import connection_of, workspace_refused
from attempts.notify.services.send import SECONDS, card_words
from attempts.notify.states import NotificationState, RouteState
from attempts.reviews.selectors.reviews import database_now
from reasoncodes.base.actors import CLOCK
from reasoncodes.base.tenancy import every_tenant

log = structlog.get_logger("holdpoint.notifications")
BATCH = 50
# A row that a dead worker has leased is tried again after LEASE. BUDGET bounds one run of the task; it is shorter than
# LEASE, so that no other worker takes rows of a batch that is still being sent.
LEASE = timedelta(seconds=60)
BUDGET = timedelta(seconds=30)
RELATED = ("review__attempt__contract", "review__attempt__decision", "review__decision", "route__workspace")


def cards_refresh(*, now: Callable[[], datetime], base_url: str) -> int:
    """Refreshes due cards and returns how many. A workspace that asks us to wait is skipped for the rest of the run."""
    ends_at, done = now() + BUDGET, 0
    paused: set[UUID] = set()
    with every_tenant():
        rows = _take()
        signed = signatures(reviews=[row.review for row in rows])
        for row in rows:
            workspace = row.route.workspace if row.route is not None else None
            if workspace is None or workspace.state != RouteState.ACTIVE:
                _mine(row).update(refresh_at=None, last_error="not_updated")
            elif workspace.id not in paused and now() < ends_at:
                outcome = _tried(row, workspace, signed.get(row.review_id, 0), base_url, at=now())
                if isinstance(outcome, Trouble) and outcome.pauses:
                    paused.add(workspace.id)
                done += _settle(row, workspace, outcome, at=now())
    return done


def _tried(
    row: Notification, workspace: ChatWorkspace, signed: int, base_url: str, *, at: datetime
) -> Delivered | Trouble:
    """Refreshes one card."""
    try:
        facts = review_facts(review=row.review, signed=signed, base_url=base_url)
        return _update(row, workspace, facts, at=at)
    except Exception as error:
        # Any error: a card that fails in an unforeseen way must not stop the cards behind it. It is tried again later.
        if not connection.is_usable():
            raise
        log.error("card_not_refreshed", notification_id=str(row.id), exc_info=error)
        return Trouble("internal_error")


def _take() -> list[Notification]:
    """Leases due cards by moving `refresh_at`."""
    # Slack is called outside the transaction, so the row lock cannot protect the call; the moved time does. SKIP
    # LOCKED: a vote that touches its cards must not make this task wait.
    with transaction.atomic():
        at = database_now()
        due = Notification.objects.filter(refresh_at__lte=at, state=NotificationState.SENT).order_by("refresh_at", "id")
        locked = due.select_for_update(no_key=True, of=("self",), skip_locked=True)[:BATCH]
        ids = [row.id for row in locked]
        Notification.objects.filter(id__in=ids).update(refresh_at=at + LEASE, refresh_tries=F("refresh_tries") + 1)
    return list(Notification.objects.filter(id__in=ids).select_related(*RELATED).order_by("id"))


def _update(row: Notification, workspace: ChatWorkspace, facts: ReviewFacts, *, at: datetime) -> Delivered | Trouble:
    way = connection_of(workspace)
    if isinstance(way, Trouble):
        return way
    channel = row.route.chat_channel if row.route is not None else ""
    body = {"channel": channel, "ts": row.message_ref} | card_words(row, facts, now=at)
    return slack_call(connection=way, method="chat.update", body=body, seconds=SECONDS)


def _settle(row: Notification, workspace: ChatWorkspace, outcome: Delivered | Trouble, *, at: datetime) -> int:
    if isinstance(outcome, Delivered):
        return _mine(row).update(refresh_at=None, refresh_tries=0)
    if outcome.blame is Blame.WORKSPACE:
        workspace_refused(actor=CLOCK, at=at, workspace_id=workspace.id, why=outcome.why)
    for_ever = outcome.blame is not Blame.NOBODY or row.refresh_tries >= MOST_TRIES
    later = None if for_ever else at + wait_before(tries=row.refresh_tries, after=outcome.after)
    _mine(row).update(refresh_at=later, last_error=outcome.why)
    return 0


def _mine(row: Notification) -> QuerySet[Notification]:
    # Only if `refresh_at` is still as we left it: a review that changed meanwhile has set it again, and that refresh
    # must not be marked as done.
    return Notification.objects.filter(id=row.id, refresh_at=row.refresh_at)
