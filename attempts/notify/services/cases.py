"""Tells the escalation owner's group that a quarantine case was opened or escalated: by mail, and in the chat channels
that a route names. A notice is a row before it is sent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from attempts.lifecycle.selectors.attempts import attempt_decision
from attempts.notify.adapters.mail import mail_connection, mail_send
from attempts.notify.adapters.slack import slack_call
from attempts.notify.models import CaseNotice, NotificationRoute
from attempts.notify.rules.cases import CaseWords, case_card, case_letter
from attempts.notify.rules.delivery import MOST_TRIES, Blame, Delivered, Trouble, wait_before
from attempts.notify.selectors import mail_modes
from attempts.notify.services.chat_accounts import address_refused
from attempts.notify.services.chat_workspace import connection_of, workspace_refused
from attempts.notify.services.routes import SEND, route_refused
from attempts.notify.services.send import CHOICES, SECONDS
from attempts.notify.states import CaseNoticeKind, NotifyChannel, RouteState
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.selectors import case_owners
from attempts.reviews.selectors.card import asked_action
from attempts.reviews.selectors.reviews import database_now
from governance.outside.wake_up import wake_up_once
from governance.people.models import User
from governance.people.rules.roles import OPERATOR, VIEW
from governance.people.selectors.people import people_in_role, person_may
from reasoncodes.base.actors import CLOCK
from reasoncodes.base.tenancy import every_tenant

BATCH = 50
# A notice that a dead worker took is tried again after this time. Longer than one call.
LEASE = timedelta(seconds=60)
BUDGET = timedelta(seconds=30)


def case_notice_write(case: QuarantineCase, *, kind: CaseNoticeKind, at: datetime) -> None:
    """Writes that the case is to be told of, in the transaction that opened or escalated it: one row, no look-up."""
    CaseNotice.objects.create(
        organization_id=case.organization_id, case=case, kind=kind.value, next_try_at=at, created_at=at
    )
    wake_up_once(SEND)


def case_opened(case: QuarantineCase, *, at: datetime) -> None:
    case_notice_write(case, kind=CaseNoticeKind.OPENED, at=at)


def case_notices_send(*, now: Callable[[], datetime], base_url: str) -> int:
    """Addresses new notices and sends what is due. Returns how many messages were sent."""
    ends_at, sent = now() + BUDGET, 0
    with every_tenant():
        _address()
        rows = _take()
        if not rows:
            return 0
        with mail_connection() as mail:
            for row in rows:
                if now() >= ends_at:
                    break
                sent += _settle(row, _told(row, mail, base_url), at=now())
    return sent


def _address() -> None:
    """Turns each new notice into one row per receiver, once."""
    # SKIP LOCKED: two workers share the notices. The unique constraint keeps a receiver from being told twice.
    with transaction.atomic():
        at = database_now()
        new = CaseNotice.objects.filter(route=None, recipient=None, next_try_at__lte=at).order_by("next_try_at", "id")
        locked = new.select_for_update(no_key=True, of=("self",), skip_locked=True)
        for notice in locked.select_related("case__attempt")[:BATCH]:
            CaseNotice.objects.bulk_create(_receivers(notice, at), ignore_conflicts=True)
            notice.next_try_at, notice.sent_at = None, at
            notice.save(update_fields=["next_try_at", "sent_at"])


def _receivers(notice: CaseNotice, at: datetime) -> list[CaseNotice]:
    case = notice.case

    def row(**receiver: Any) -> CaseNotice:
        return CaseNotice(
            organization_id=case.organization_id,
            case=case,
            kind=notice.kind,
            next_try_at=at,
            created_at=at,
            **receiver,
        )

    people = [row(recipient_id=person) for person in _people(notice)]
    return people + [row(route=route) for route in _routes(case)]


def _people(notice: CaseNotice) -> list[UUID]:
    """Who gets a mail: the owner's group. Operators too when the case is escalated, or if no mail reaches the group."""
    case = notice.case
    owners = list(mail_modes(people=case_owners(case=case)))
    if owners and notice.kind == CaseNoticeKind.OPENED:
        return owners
    operators = mail_modes(people=people_in_role(organization_id=case.organization_id, role=OPERATOR))
    return list(dict.fromkeys([*owners, *operators]))


def _routes(case: QuarantineCase) -> list[NotificationRoute]:
    """The chat channels for this contract and group, each once."""
    rows = NotificationRoute.objects.filter(
        Q(workspace__state=RouteState.ACTIVE),
        organization_id=case.organization_id,
        state=RouteState.ACTIVE,
        channel=NotifyChannel.SLACK,
        contract_slug__in={"", case.attempt.workflow_slug},
        tier__in={"", case.escalation_owner},
    ).order_by("id")
    return list({(route.workspace_id, route.chat_channel): route for route in rows}.values())


def _take() -> list[CaseNotice]:
    """Leases due rows by moving `next_try_at`: mail and chat are called outside the transaction."""
    with transaction.atomic():
        at = database_now()
        due = CaseNotice.objects.filter(~Q(route=None, recipient=None), next_try_at__lte=at)
        locked = due.order_by("next_try_at", "id").select_for_update(no_key=True, of=("self",), skip_locked=True)
        ids = [row.id for row in locked[:BATCH]]
        CaseNotice.objects.filter(id__in=ids).update(next_try_at=at + LEASE, tries=F("tries") + 1)
    rows = CaseNotice.objects.filter(id__in=ids)
    return list(rows.select_related("case__attempt__contract", "route__workspace", "recipient").order_by("id"))


def _told(row: CaseNotice, mail: Any, base_url: str) -> Delivered | Trouble:
    """Sends one message, if it is still wanted."""
    if row.case.resolution:
        return Trouble("case_resolved", Blame.MESSAGE)
    words = _words(row, base_url)
    if row.recipient is not None:
        return _mail(row, row.recipient, mail, words, base_url)
    route = row.route
    if route is None or route.workspace is None or not _active(route):
        return Trouble("route_disabled", Blame.MESSAGE)
    way = connection_of(route.workspace)
    if isinstance(way, Trouble):
        return way
    body = {"channel": route.chat_channel, "unfurl_links": False, "unfurl_media": False} | case_card(words)
    return slack_call(connection=way, method="chat.postMessage", body=body, seconds=SECONDS)


def _active(route: NotificationRoute) -> bool:
    workspace = route.workspace
    return route.state == RouteState.ACTIVE and workspace is not None and workspace.state == RouteState.ACTIVE


def _mail(row: CaseNotice, person: User, mail: Any, words: CaseWords, base_url: str) -> Delivered | Trouble:
    # Just before sending: a person who has left, or who chose no mail meanwhile, gets none.
    allowed = person_may(user_id=person.id, organization_id=row.organization_id, permission=VIEW)
    if not allowed or person.id not in mail_modes(people=[person]):
        return Trouble("not_wanted", Blame.MESSAGE)
    subject, body = case_letter(words, choices=f"{base_url}{CHOICES}" if base_url else "")
    return mail_send(mail, to=person.email, subject=subject, body=body)


def _words(row: CaseNotice, base_url: str) -> CaseWords:
    case, attempt = row.case, row.case.attempt
    return CaseWords(
        kind=CaseNoticeKind(row.kind),
        title=attempt.contract.title,
        category=case.category,
        owner=case.escalation_owner,
        asked=asked_action(attempt=attempt, decision=attempt_decision(attempt=attempt)),
        opened_at=case.opened_at,
        due_at=case.escalate_at,
        link=f"{base_url}/review/cases/{case.id}" if base_url else "",
    )


def _settle(row: CaseNotice, outcome: Delivered | Trouble, *, at: datetime) -> int:
    """Records what became of a message, but only while its lease is ours: a later one has counted another try."""
    mine = CaseNotice.objects.filter(id=row.id, tries=row.tries, sent_at=None)
    if isinstance(outcome, Delivered):
        return mine.update(sent_at=at, next_try_at=None, last_error="")
    given_up = outcome.blame is not Blame.NOBODY or row.tries >= MOST_TRIES
    later = None if given_up else at + wait_before(tries=row.tries, after=outcome.after)
    mine.update(next_try_at=later, last_error=outcome.why)
    _blamed(row, outcome, at=at)
    return 0


def _blamed(row: CaseNotice, trouble: Trouble, *, at: datetime) -> None:
    workspace: UUID | None = row.route.workspace_id if row.route is not None else None
    if trouble.blame is Blame.ADDRESS and row.recipient is not None:
        address_refused(user=row.recipient, at=at)
    elif trouble.blame is Blame.ROUTE and row.route_id is not None:
        route_refused(actor=CLOCK, at=at, route_id=row.route_id, why=trouble.why)
    elif trouble.blame is Blame.WORKSPACE and workspace is not None:
        workspace_refused(actor=CLOCK, at=at, workspace_id=workspace, why=trouble.why)
