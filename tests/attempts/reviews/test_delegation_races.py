"""Delegations on real connections: a vote, the end of a delegation and the loss of a tier see each other."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.reviews.models import Delegation
from attempts.reviews.selectors.standing import role_holders
from attempts.reviews.services.delegate import Cover, delegation_create, delegation_end
from governance.people.models import User
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, TIER, Clinic, at_once, do, status_of, votes
from tests.cast import Cast
from tests.governance.support import in_parallel

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 8


class Scene:
    """A held request of Boss, and Dora, who could decide on it."""

    def __init__(self) -> None:
        self.cast = Cast()
        self.clinic = Clinic(self.cast)
        self.dora = self.cast.person("dora", REVIEWER)
        self.client = self.cast.session(self.dora)
        self.review = self.clinic.hold()

    def delegate(self, giver: User, to: str = "dora") -> Delegation:
        cover = Cover(TIER, to, "handover", timezone.now() + timedelta(days=1))
        actor = self.cast.actor(giver, [self.cast.organization])
        with every_tenant():
            return delegation_create(actor=actor, at=timezone.now(), organization=self.cast.organization, cover=cover)

    def end(self, delegation: Delegation) -> Delegation:
        actor = self.cast.actor(self.dora, [self.cast.organization])
        with every_tenant():
            return delegation_end(actor=actor, at=timezone.now(), delegation_id=delegation.id)

    def take(self, user: User) -> None:
        with every_tenant():
            person_role_take(
                actor=SYSTEM, at=timezone.now(), user=user, organization=self.cast.organization, role=REVIEWER
            )

    def vote(self) -> int:
        return int(do(self.client, self.review, "approve").status_code)


def voted_during(scene: Scene, change: Callable[[], Any]) -> int:
    """The answer to a vote that arrives while the change is done and not yet committed."""
    done, let_go = threading.Event(), threading.Event()

    def changing() -> None:
        with transaction.atomic():
            change()
            done.set()
            assert let_go.wait(20)

    def voting() -> int:
        assert done.wait(20)
        threading.Timer(0.4, let_go.set).start()
        return scene.vote()

    return int(in_parallel(changing, voting)[1])


def test_a_vote_that_comes_while_the_tier_is_taken_waits_and_does_not_count() -> None:
    scene = Scene()
    assert voted_during(scene, lambda: scene.take(scene.dora)) == 403
    assert (status_of(scene.review)[0], votes(scene.review)) == ("requested", [])


def test_a_vote_that_comes_while_the_requester_delegates_waits_and_is_refused() -> None:
    scene = Scene()
    assert voted_during(scene, lambda: scene.delegate(scene.clinic.responsible)) == 403
    assert votes(scene.review) == []


def test_a_vote_that_comes_while_the_delegation_ends_waits_and_counts() -> None:
    scene = Scene()
    delegation = scene.delegate(scene.clinic.responsible)
    assert scene.vote() == 403
    assert voted_during(scene, lambda: scene.end(delegation)) == 200
    assert status_of(scene.review)[0] == "approved"


def test_nobody_without_the_tier_is_left_with_a_delegation() -> None:
    """Whichever comes first: the delegation is refused, or ended by the loss."""
    scene = Scene()
    for number in range(ROUNDS):
        giver, to = scene.cast.person(f"giver{number}", REVIEWER), scene.cast.person(f"to{number}", REVIEWER)
        loser = to if number % 2 else giver

        def create(giver: User = giver, to: User = to) -> str:
            try:
                return str(scene.delegate(giver, to.username).id)
            except Exception as error:
                return type(error).__name__

        made, _ = at_once(create, lambda loser=loser: scene.take(loser))
        with every_tenant():
            left = Delegation.objects.filter(from_user=giver, ended_at=None)
            holders = role_holders(organization_id=scene.cast.organization.id, tiers=[TIER], people=[loser.id])
            assert (list(left), holders) == ([], {}), made


def test_two_delegations_of_one_tier_at_once_leave_one() -> None:
    scene = Scene()
    scene.cast.person("emil", REVIEWER)
    ends = (timezone.now() + timedelta(days=1)).isoformat()
    for number in range(ROUNDS):
        giver = scene.cast.person(f"giver{number}", REVIEWER)
        clients = [(scene.cast.session(giver), to) for to in ("dora", "emil")]

        def create(client: Any, to: str) -> int:
            asked = {"tier": TIER, "to_username": to, "reason_code": "handover", "ends_at": ends}
            return int(client.post("/api/v1/delegations", asked, format="json").status_code)

        found = at_once(*(lambda client=client, to=to: create(client, to) for client, to in clients))
        assert sorted(found) == [201, 409]
        with every_tenant():
            assert Delegation.objects.filter(from_user=giver, ended_at=None).count() == 1
