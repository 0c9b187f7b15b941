"""A clinic with a Slack workspace, a route, and people whose accounts are linked."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.models import ChatIdentity, ChatWorkspace, Notification, NotificationRoute
from attempts.notify.services.announce import reviews_announce
from attempts.notify.services.cards import cards_refresh
from attempts.notify.services.chat_workspace import workspace_connect
from attempts.notify.services.routes import route_create
from attempts.notify.services.send import notifications_send
from attempts.notify.states import NotifyChannel
from attempts.reviews.models import Review
from governance.people.models import User
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.notify.stand_in import (
    CHANNEL,
    SECRET,
    TEAM,
    TOKEN,
    SlackStandIn,
    call_back,
    click,
    deliver,
    signed,
    slack_running,
)
from tests.attempts.reviews.support import REVIEWER, Clinic
from tests.cast import Cast

RITA, SAM, BOSS = "U0RITA", "U0SAM", "U0BOSS"


class Chat:
    """The clinic's Slack: `tell` runs the ticks, `press` clicks a button of the newest card."""

    def __init__(self, clinic: Clinic, slack: SlackStandIn) -> None:
        self.clinic, self.slack, self.cast = clinic, slack, clinic.cast
        self.operator = self.cast.actor(self.cast.operator, [self.cast.organization])

    @cached_property
    def workspace(self) -> ChatWorkspace:
        with every_tenant():
            return workspace_connect(
                actor=self.operator,
                at=timezone.now(),
                organization=self.cast.organization,
                name="Clinic",
                team_id=TEAM,
                bot_token=TOKEN,
                signing_secret=SECRET,
            )

    @property
    def address(self) -> str:
        return f"/integrations/slack/{self.workspace.id}"

    def route(self, channel: NotifyChannel = NotifyChannel.SLACK, **facts: Any) -> NotificationRoute:
        slack = {"workspace_id": self.workspace.id, "chat_channel": CHANNEL} if channel is NotifyChannel.SLACK else {}
        with every_tenant():
            return route_create(
                actor=self.operator,
                at=timezone.now() - timedelta(minutes=1),
                organization=self.cast.organization,
                channel=channel,
                base_url=public_url(),
                **(slack | facts),
            )

    def link(self, person: User, account: str) -> ChatIdentity:
        with every_tenant():
            return ChatIdentity.objects.create(
                workspace=self.workspace, user=person, chat_user=account, linked_at=timezone.now()
            )

    def tell(self) -> int:
        reviews_announce(at=timezone.now())
        sent = notifications_send(now=timezone.now, base_url=public_url())
        cards_refresh(now=timezone.now, base_url=public_url())
        return sent

    def card(self) -> dict[str, Any]:
        return self.slack.of("chat.postMessage")[-1]

    def press(self, action: str, *, user: str, **how: Any) -> Any:
        return call_back(self.address, click(self.card(), action, user=user, **how))

    def command(self, text: str, *, user: str, team: str = TEAM) -> Any:
        form = {"command": "/holdpoint", "text": text, "user_id": user, "team_id": team}
        body = urlencode(form).encode()
        return deliver(self.address, body, signed(body))


def rows(**facts: Any) -> list[Notification]:
    with every_tenant():
        found = Notification.objects.filter(**facts).select_related("route", "recipient", "review")
        return list(found.order_by("id"))


def send() -> int:
    return notifications_send(now=timezone.now, base_url=public_url())


def states(**facts: Any) -> list[tuple[str, str, str]]:
    return [(row.kind, row.state, row.last_error) for row in rows(**facts)]


def due_now(**facts: Any) -> None:
    """As if the time had come."""
    with every_tenant():
        moment = timezone.now() - timedelta(seconds=1)
        Notification.objects.filter(**facts).update(next_try_at=moment)
        Notification.objects.filter(**facts, refresh_at__isnull=False).update(refresh_at=moment)


def announced(review: Review) -> bool:
    with every_tenant():
        return Review.objects.get(id=review.id).announced_at is not None


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackStandIn]:
    with slack_running() as slack:
        settings.HOLDPOINT_SLACK_BASE_URL = slack.url
        yield slack


@pytest.fixture
def chat(cast: Cast, slack: SlackStandIn) -> Chat:
    """One approval is enough; Rita and Boss, who is behind the asking service, are linked."""
    chat = Chat(Clinic(cast), slack)
    chat.route()
    chat.link(cast.reviewer, RITA)
    chat.link(chat.clinic.responsible, BOSS)
    return chat


@pytest.fixture
def mailing(cast: Cast, slack: SlackStandIn) -> Chat:
    """Mail only, to Rita and Sam."""
    chat = Chat(Clinic(cast), slack)
    for name in ("rita", "sam"):
        person = cast.reviewer if name == "rita" else cast.person(name, REVIEWER)
        User.objects.filter(id=person.id).update(email=f"{name}@clinic.invalid")
    return chat
