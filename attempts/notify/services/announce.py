"""Writes the messages of a review as rows: cards and mails once after intake, reminders, and refreshes of cards.

Intake writes none of them: that would be one more statement for every held attempt, even without routes.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models.functions import Now

from attempts.notify.models import Notification, NotificationRoute
from attempts.notify.selectors import mail_modes, organizations_told, people_to_mail, routes_for
from attempts.notify.states import MailMode, NotificationState, NotifyChannel, NotifyKind
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import LockedReview, database_now
from attempts.reviews.selectors.standing import ReminderPeople
from attempts.reviews.services.due import each_review_in_turn
from attempts.reviews.states import ReviewStatus
from governance.outside.wake_up import wake_up_once
from reasoncodes.base.tenancy import every_tenant

MOST_AT_ONCE = 200
OWN_DIGEST_MINUTES = 60
"""For a person who wants digests although the route sends single mails."""


def reviews_announce(*, at: datetime) -> int:
    """Writes the messages of new reviews in organizations with a route, in fair turns between them, and returns how
    many reviews there were: at most MOST_AT_ONCE, so that what is written is sent before more is written."""
    # New reviews are found by the partial index `review_unannounced`, per organization.
    with every_tenant():
        waiting = Review.objects.filter(status=ReviewStatus.REQUESTED, announced_at=None)
        weights = organizations_told()
    return each_review_in_turn(
        waiting,
        "requested_at",
        lambda locked: _announce(locked, at),
        tick="reviews_announce",
        weights=weights,
        most=MOST_AT_ONCE,
    )


def _announce(locked: LockedReview, at: datetime) -> bool:
    review = locked.review
    if review.announced_at is not None:
        return False
    if not locked.overdue(database_now()):
        # Conflicts are ignored: a message for the same review and receiver exists already and must not come twice.
        Notification.objects.bulk_create(_rows(locked, at), ignore_conflicts=True)
    review.announced_at = at
    review.save(update_fields=["announced_at"])
    return True


def _rows(locked: LockedReview, at: datetime) -> list[Notification]:
    """One card per channel and one mail per person, even if several routes lead there."""
    rows: list[Notification] = []
    channels: set[tuple[UUID | None, str]] = set()
    people: set[UUID] = set()
    for route in routes_for(review=locked.review, attempt=locked.attempt):
        if route.channel == NotifyChannel.SLACK:
            if (route.workspace_id, route.chat_channel) not in channels:
                channels.add((route.workspace_id, route.chat_channel))
                rows.append(_row(locked.review, NotifyKind.CARD, at, route=route))
            continue
        for row in _mails(locked, route, at):
            if row.recipient_id is not None and row.recipient_id not in people:
                people.add(row.recipient_id)
                rows.append(row)
    return rows


def _mails(locked: LockedReview, route: NotificationRoute, at: datetime) -> list[Notification]:
    people = people_to_mail(review=locked.review, attempt=locked.attempt, tier=route.tier)
    rows = []
    for user_id, mode in mail_modes(people=people).items():
        row = _row(locked.review, NotifyKind.MAIL, at, route=route, user_id=user_id)
        minutes = digest_minutes(route=route, mode=mode)
        if minutes:
            row.digest, row.next_try_at = True, digest_moment(at=at, minutes=minutes)
        rows.append(row)
    return rows


def digest_minutes(*, route: NotificationRoute, mode: MailMode) -> int:
    """The interval of the digest; 0: a single mail at once."""
    if mode is MailMode.EACH:
        return 0
    return route.digest_minutes or (OWN_DIGEST_MINUTES if mode is MailMode.DIGEST else 0)


def digest_moment(*, at: datetime, minutes: int) -> datetime:
    """The end of the present interval. Reviews until then are in the same mail."""
    seconds = minutes * 60
    return at + timedelta(seconds=seconds - at.timestamp() % seconds)


def reminder_rows(review: Review, people: ReminderPeople, *, at: datetime) -> None:
    """Writes the rows of a reminder, in its transaction: mails, and a message below every card."""
    reachable = mail_modes(people=[*people.reviewers, *people.operators])
    reviewers = {person.id for person in people.reviewers}
    rows = [_row(review, NotifyKind.REMINDER, at, user_id=one) for one in reachable if one in reviewers]
    operators = [person.id for person in people.operators if person.id in reachable]
    rows += [_row(review, NotifyKind.ESCALATION, at, user_id=one) for one in operators]
    cards = Notification.objects.filter(review=review, kind=NotifyKind.CARD).exclude(state=NotificationState.DROPPED)
    rows += [_row(review, NotifyKind.REMINDER, at, route=card.route) for card in cards.select_related("route")]
    Notification.objects.bulk_create(rows, ignore_conflicts=True)


def _row(
    review: Review,
    kind: NotifyKind,
    at: datetime,
    *,
    route: NotificationRoute | None = None,
    user_id: UUID | None = None,
) -> Notification:
    return Notification(
        organization_id=review.organization_id,
        review=review,
        route=route,
        kind=kind.value,
        recipient_id=user_id,
        next_try_at=at,
        created_at=at,
    )


REFRESH = "attempts.tasks.notify.cards_refresh"


def cards_touch(review: Review) -> None:
    """Marks the cards of a review for a refresh. Costs one indexed statement; without a card nothing else happens."""
    # The tries start again, because this is a new change. The wake-up is sent after the commit.
    shown = Notification.objects.filter(
        review=review, kind=NotifyKind.CARD, state__in=[NotificationState.PENDING, NotificationState.SENT]
    )
    if shown.update(refresh_at=Now(), refresh_tries=0):
        wake_up_once(REFRESH)
