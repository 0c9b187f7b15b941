"""Messages about reviews go out in fair turns: one organization's many reviews do not keep another's waiting."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.models import Notification
from attempts.notify.services.announce import reviews_announce
from attempts.notify.services.routes import route_create
from attempts.notify.services.send import BATCH, _turns
from attempts.notify.states import NotifyChannel
from governance.people.models import User
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, ask
from tests.cast import Cast

pytestmark = pytest.mark.django_db


class Elsewhere:
    """The cast's other organization, in the place of the clinic."""

    def __init__(self, cast: Cast) -> None:
        self.organization = cast.other


def told(cast: Cast, organization: Organization, operator: User) -> None:
    """Its reviewers get mail."""
    person = cast.person(f"rita-{organization.slug}", REVIEWER, organization=organization)
    User.objects.filter(id=person.id).update(email=f"rita@{organization.slug}.invalid")
    with every_tenant():
        route_create(
            actor=cast.actor(operator, [organization]),
            at=timezone.now() - timedelta(minutes=1),
            organization=organization,
            channel=NotifyChannel.EMAIL,
            base_url=public_url(),
        )


@pytest.fixture
def two(cast: Cast) -> tuple[UUID, UUID]:
    told(cast, cast.organization, cast.operator)
    told(cast, cast.other, cast.other_operator)
    return cast.organization.id, cast.other.id


@pytest.mark.parametrize(("weight", "order"), [(1, "ababaaa"), (2, "aabaaba")])
def test_reviews_are_announced_in_turns_by_weight(cast: Cast, two: tuple[UUID, UUID], weight: int, order: str) -> None:
    with every_tenant():
        Organization.objects.filter(id=cast.organization.id).update(capacity_units=weight)
        for _ in range(5):
            ask(cast)
        for _ in range(2):
            ask(Elsewhere(cast))  # type: ignore[arg-type]
    assert reviews_announce(at=timezone.now()) == 7
    with every_tenant():
        written = Notification.objects.order_by("id").values_list("organization_id", flat=True)
        assert "".join("ab"[two.index(one)] for one in written) == order


def waiting(cast: Any, organization: Organization, people: list[User], at: Any) -> None:
    review = ask(cast)
    Notification.objects.bulk_create(
        Notification(
            organization=organization, review=review, kind="mail", recipient=one, next_try_at=at, created_at=at
        )
        for one in people
    )


def test_a_hundred_messages_of_one_do_not_keep_three_of_another_waiting(cast: Cast, two: tuple[UUID, UUID]) -> None:
    at = timezone.now()
    people = User.objects.bulk_create(User(username=f"many-{number}") for number in range(2 * BATCH))
    with every_tenant():
        waiting(cast, cast.organization, people, at - timedelta(minutes=5))
        waiting(Elsewhere(cast), cast.other, people[:3], at - timedelta(minutes=1))
        turns = _turns(at)
        found = dict(Notification.objects.values_list("id", "organization_id"))
    assert len(turns) == BATCH
    assert [turn for turn, id_ in enumerate(turns) if found[id_] == two[1]] == [1, 3, 5]
