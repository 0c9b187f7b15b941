"""Sends due messages: leases rows, calls mail server or chat, and records what became of each.

The rows are written in `announce`. A message whose answer was lost may be sent twice.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from attempts.fairness.rules import in_turns
from attempts.metrics import NOTIFICATIONS
from attempts.notify.adapters.mail import mail_connection, mail_send
from attempts.notify.adapters.mark import card_value
from attempts.notify.adapters.slack import slack_call
from attempts.notify.models import ChatWorkspace, Notification
from attempts.notify.rules.cards import card, reminder
from attempts.notify.rules.delivery import MOST_TRIES, Blame, Delivered, Trouble, wait_before
from attempts.notify.rules.facts import ReviewFacts
from attempts.notify.rules.letters import letter
from attempts.notify.selectors import may_get_mail, review_facts, signatures
from attempts.notify.services.chat_accounts import address_refused
from attempts.notify.services.chat_workspace import connection_of, workspace_refused
from attempts.notify.services.routes import SEND, route_refused, rows_change
from attempts.notify.sql import HEADS
from attempts.notify.states import NotificationState, NotifyChannel, NotifyKind, RouteState
from attempts.reviews.selectors.reviews import database_now
from governance.outside.wake_up import wake_up_once
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import CLOCK, Actor
from reasoncodes.base.errors import NotFound, WrongState
from reasoncodes.base.tenancy import every_tenant

log = structlog.get_logger("holdpoint.notifications")
BATCH = 50
SECONDS = 10.0
# A row that a dead worker has leased is taken by the next one after LEASE. BUDGET bounds one run of the task. Together
# with one call of SECONDS it is shorter than LEASE, so that no other worker takes rows of a batch under way.
LEASE = timedelta(seconds=60)
BUDGET = timedelta(seconds=30)
RELATED = (
    "review__attempt__contract",
    "review__attempt__decision",
    "review__decision",
    "route__workspace",
    "recipient",
)
CHOICES = "/review/notifications"
Now = Callable[[], datetime]
Target = UUID | str
MAIL = "mail"


def notifications_send(*, now: Now, base_url: str, review_id: UUID | None = None) -> int:
    """Sends until nothing is due or the time is over, and returns how many were sent. The next run goes on."""
    ends_at, sent = now() + BUDGET, 0
    with every_tenant():
        while now() < ends_at and (batch := _take(review_id)):
            sent += NotificationBatch(batch, now=now, ends_at=ends_at, base_url=base_url).run()
    return sent


def _take(review_id: UUID | None) -> list[Notification]:
    """Leases the next due rows, in fair turns between organizations."""
    with transaction.atomic():
        # The database's clock for all leases: workers' clocks differ.
        at = database_now()
        turns = {id_: turn for turn, id_ in enumerate(_turns(at))} if review_id is None else {}
        # Rows of a route that another worker is sending to wait, here again: it may have begun since the turns were
        # looked up.
        busy = Notification.objects.filter(route=OuterRef("route"), leased_until__gt=at)
        due = Notification.objects.filter(
            ~Exists(busy),
            Q(leased_until=None) | Q(leased_until__lte=at),
            state=NotificationState.PENDING,
            next_try_at__lte=at,
        ).order_by("next_try_at", "id")
        mine = _locked(due.filter(id__in=turns) if review_id is None else due.filter(review_id=review_id))[:BATCH]
        ids = [row.id for row in mine]
        people = {row.recipient_id for row in mine if row.digest}
        if people:  # all rows of a person's digest, although the batch may be full: otherwise it would be two mails
            ids += [row.id for row in _locked(due.filter(recipient__in=people, digest=True).exclude(id__in=ids))]
        Notification.objects.filter(id__in=ids).update(leased_until=at + LEASE, tries=F("tries") + 1)
    rows = Notification.objects.filter(id__in=ids).select_related(*RELATED).order_by("next_try_at", "id")
    return sorted(rows, key=lambda row: turns.get(row.id, BATCH))


def _turns(at: datetime) -> list[UUID]:
    """Whose messages are next: one organization's many reviews must not keep another's waiting."""
    lines: dict[UUID, list[UUID]] = defaultdict(list)
    weights: dict[UUID, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(HEADS, {"at": at, "each": BATCH})
        for organization_id, weight, id_ in cursor.fetchall():
            lines[organization_id].append(id_)
            weights[organization_id] = weight
    return list(islice(in_turns(lines, weights), BATCH))


def _locked(rows: QuerySet[Notification]) -> QuerySet[Notification]:
    # SKIP LOCKED: two workers share the due rows instead of waiting for each other.
    return rows.select_for_update(no_key=True, of=("self",), skip_locked=True)


class NotificationBatch:
    """Sends one batch with one connection to the mail server, and remembers which receivers asked us to wait."""

    def __init__(self, batch: Sequence[Notification], *, now: Now, ends_at: datetime, base_url: str) -> None:
        self.batch, self.now, self.ends_at = batch, now, ends_at
        self.choices = f"{base_url}{CHOICES}" if base_url else ""
        self.base_url, self.signed = base_url, signatures(reviews=[row.review for row in batch])
        self.paused: dict[Target, Trouble] = {}
        self.closed: set[UUID] = set()
        """Routes and workspaces that this batch has disabled; their rows are already stopped."""
        self.mail: Any = None

    def run(self) -> int:
        sent = 0
        with ExitStack() as stack:
            if any(row.recipient_id for row in self.batch):
                self.mail = stack.enter_context(mail_connection())
            for group in _groups(self.batch):
                target = _target(group[0])
                if target in self.paused or self.now() >= self.ends_at:
                    self._put_back(group, self.paused.get(target))
                    continue
                sent += self._tried(group, target)
        return sent

    def _tried(self, group: list[Notification], target: Target) -> int:
        """Delivers one group and returns how many rows were sent."""
        try:
            return self._deliver([row for row in group if self._needed(row)], target)
        except Exception as error:
            # Any error counts as a try: a row that fails in an unforeseen way must not stop the rows behind it for
            # ever. Without a database no row can be handled, so then the task fails as a whole.
            if not connection.is_usable():
                raise
            log.error("notification_failed", notification_id=str(group[0].id), exc_info=error)
            self._failed(group, Trouble("internal_error"))
            return 0

    def _deliver(self, group: list[Notification], target: Target) -> int:
        if not group:
            return 0
        outcome = self._mail(group) if group[0].recipient_id else self._chat(group[0])
        if isinstance(outcome, Trouble):
            self._failed(group, outcome)
            if outcome.pauses:
                self._pause(target, outcome)
            return 0
        done = {"state": NotificationState.SENT, "sent_at": self.now(), "message_ref": outcome.message_ref}
        return _counted(group, "sent", sum(_settle(row, last_error="", **done) for row in group))

    def _needed(self, row: Notification) -> bool:
        """Checks just before sending whether the message is still wanted. If not, the row is settled."""
        facts = self._facts(row)
        over = not facts.open or (facts.expires_at is not None and facts.expires_at <= self.now())
        route = row.route
        if route is not None and (route.id in self.closed or route.workspace_id in self.closed):
            return False
        if over:
            _settle(row, state=NotificationState.DROPPED, last_error="review_ended", refresh_at=None)
        elif route is not None and not _active(route.state, route.workspace):
            _settle(row, state=NotificationState.STOPPED, last_error="route_disabled")
        elif row.recipient_id and not may_get_mail(row=row):
            _settle(row, state=NotificationState.DROPPED, last_error="not_wanted")
        else:
            return True
        return False

    def _facts(self, row: Notification) -> ReviewFacts:
        signed = self.signed.get(row.review_id, 0)
        return review_facts(review=row.review, signed=signed, base_url=self.base_url)

    # -- the ways out -----------------------------------------------------------------------------------------------
    def _mail(self, group: list[Notification]) -> Delivered | Trouble:
        about = [self._facts(row) for row in group]
        subject, body = letter(about, kind=NotifyKind(group[0].kind), now=self.now(), choices=self.choices)
        person = group[0].recipient
        return mail_send(self.mail, to=person.email if person else "", subject=subject, body=body)

    def _chat(self, row: Notification) -> Delivered | Trouble:
        route = row.route
        if route is None or route.workspace is None:
            return Trouble("no_receiver", Blame.MESSAGE)
        way = connection_of(route.workspace)
        if isinstance(way, Trouble):
            return way
        body = {"channel": route.chat_channel, "unfurl_links": False, "unfurl_media": False} | self._words(row)
        return slack_call(connection=way, method="chat.postMessage", body=body, seconds=SECONDS)

    def _words(self, row: Notification) -> dict[str, Any]:
        facts, now = self._facts(row), self.now()
        if row.kind == NotifyKind.CARD:
            return card_words(row, facts, now=now)
        cards = Notification.objects.filter(review_id=row.review_id, route_id=row.route_id, kind=NotifyKind.CARD)
        thread = cards.exclude(message_ref="").values_list("message_ref", flat=True).first()
        more = {"thread_ts": thread, "reply_broadcast": True} if thread else {}
        return reminder(facts, now=now) | more

    # -- what went wrong --------------------------------------------------------------------------------------------
    def _failed(self, group: list[Notification], trouble: Trouble) -> None:
        at, first = self.now(), group[0]
        for row in group:
            after = _after(row, trouble, at)
            _counted([row], str(after.get("state", "put_off")), _settle(row, last_error=trouble.why, **after))
        route, person = first.route, first.recipient
        if trouble.blame is Blame.ADDRESS and person is not None:
            address_refused(user=person, at=at)
        elif trouble.blame is Blame.ROUTE and route is not None:
            self.closed.add(route.id)
            route_refused(actor=CLOCK, at=at, route_id=route.id, why=trouble.why)
        elif trouble.blame is Blame.WORKSPACE and route is not None and route.workspace_id is not None:
            self.closed.add(route.workspace_id)
            workspace_refused(actor=CLOCK, at=at, workspace_id=route.workspace_id, why=trouble.why)

    def _pause(self, target: Target, trouble: Trouble) -> None:
        """Delays all messages to this receiver, not only those of the batch."""
        # Otherwise a receiver that does not answer would be tried once for every row, each time up to the timeout.
        self.paused[target] = trouble
        until = self.now() + wait_before(tries=1, after=trouble.after)
        rows = Notification.objects.filter(state=NotificationState.PENDING, leased_until=None, next_try_at__lt=until)
        there = Q(recipient__isnull=False) if target == MAIL else Q(route__workspace_id=target)
        rows_change(rows.filter(there), next_try_at=until)

    def _put_back(self, group: list[Notification], trouble: Trouble | None) -> None:
        """Gives rows back that were not tried; it does not count as a try."""
        later = {}
        if trouble is not None:
            later["next_try_at"] = self.now() + wait_before(tries=1, after=trouble.after)
        for row in group:
            _settle(row, tries=row.tries - 1, **later)


def card_words(row: Notification, facts: ReviewFacts, *, now: datetime) -> dict[str, Any]:
    value = card_value(notification_id=row.id, action_digest=row.review.action_digest)
    return card(facts, now=now, value=value)


def _after(row: Notification, trouble: Trouble, at: datetime) -> dict[str, Any]:
    if trouble.blame in {Blame.ROUTE, Blame.WORKSPACE}:
        return {"state": NotificationState.STOPPED}
    if trouble.blame in {Blame.MESSAGE, Blame.ADDRESS} or row.tries >= MOST_TRIES:
        return {"state": NotificationState.FAILED}
    return {"next_try_at": at + wait_before(tries=row.tries, after=trouble.after)}


def _settle(row: Notification, **changes: Any) -> int:
    """Changes the row and ends its lease, but only while the lease is ours: a later one has counted another try."""
    mine = Notification.objects.filter(id=row.id, tries=row.tries, state=NotificationState.PENDING)
    return mine.update(leased_until=None, **changes)


def _counted(group: Sequence[Notification], outcome: str, count: int) -> int:
    NOTIFICATIONS.labels(NotifyChannel.EMAIL if group[0].recipient_id else NotifyChannel.SLACK, outcome).inc(count)
    return count


def _groups(batch: Iterable[Notification]) -> list[list[Notification]]:
    """Each row by itself; all rows of a person's digest together."""
    found: dict[Any, list[Notification]] = defaultdict(list)
    for row in batch:
        found[row.recipient_id if row.digest else row.id].append(row)
    return list(found.values())


def _target(row: Notification) -> Target:
    route = row.route
    return route.workspace_id if route is not None and route.workspace_id is not None else MAIL


def _active(state: str, workspace: ChatWorkspace | None) -> bool:
    return state == RouteState.ACTIVE and (workspace is None or workspace.state == RouteState.ACTIVE)


AGAIN = frozenset({NotificationState.FAILED, NotificationState.PENDING})


def notification_resend(*, actor: Actor, at: datetime, notification_id: UUID) -> Notification:
    """Sends a message again that failed or waits for its next try, as an operator. A sent one is not sent again."""
    with transaction.atomic():
        row = tenant_get(Notification, notification_id, lock=True)
        if not actor.may_act_in(row.organization_id):
            raise NotFound
        if row.state not in AGAIN:
            raise WrongState(f"This message is {row.state}.")
        row.state, row.tries, row.next_try_at, row.last_error = NotificationState.PENDING.value, 0, at, ""
        row.save(update_fields=["state", "tries", "next_try_at", "last_error"])
        wake_up_once(SEND)
    return row
