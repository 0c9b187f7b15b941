"""A person leaves while they vote: whoever comes first, no vote of theirs commits after their access ended."""

import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from attempts.reviews.models import ReviewVote
from attempts.reviews.services.decide import review_vote
from attempts.reviews.states import VoteVerdict
from governance.people.models import User
from governance.people.services.people import person_deactivate
from reasoncodes.base.errors import DomainError
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.governance.support import in_parallel
from tests.governed import HOLD

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cast() -> Cast:
    made = Cast()
    assert made.operator.id
    assert made.reviewer.id
    return made


def held(cast: Cast) -> dict[str, Any]:
    contract(cast, adapter="external", effect="none", rules=HOLD)
    answer = ask(cast.api("attempts:create"), connector="external")
    assert answer.status_code == 202, answer.content
    return dict(answer.json())


def vote(cast: Cast, attempt: dict[str, Any]) -> None:
    with every_tenant():
        review_vote(
            actor=cast.actor(cast.reviewer, [cast.organization]),
            at=timezone.now(),
            review_id=UUID(attempt["review"]["id"]),
            verdict=VoteVerdict.APPROVE,
            action_digest=attempt["action_digest"],
        )


def leave(cast: Cast) -> None:
    with every_tenant():
        person_deactivate(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=timezone.now(),
            user_id=cast.reviewer.id,
            reason_code="person_left",
        )


def somebody_waits() -> bool:
    """For something that this connection holds."""
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone() != (0,):
                return True
        threading.Event().wait(0.05)
    return False


def test_a_vote_waits_for_an_end_of_access_that_is_under_way_and_is_refused(cast: Cast) -> None:
    attempt, left = held(cast), threading.Event()
    refusals: list[DomainError] = []

    def end() -> None:
        with transaction.atomic():
            leave(cast)
            left.set()
            assert somebody_waits()

    def say() -> None:
        assert left.wait(20)
        try:
            vote(cast, attempt)
        except DomainError as refusal:
            refusals.append(refusal)

    in_parallel(end, say)
    assert [refusal.status for refusal in refusals] == [403]
    with every_tenant():
        assert not ReviewVote.objects.exists()


def test_an_end_of_access_waits_for_the_vote_that_is_being_cast(cast: Cast) -> None:
    attempt, voted = held(cast), threading.Event()

    def say() -> None:
        with transaction.atomic():
            vote(cast, attempt)
            voted.set()
            assert somebody_waits()

    def end() -> None:
        assert voted.wait(20)
        leave(cast)

    in_parallel(say, end)
    with every_tenant():
        assert ReviewVote.objects.count() == 1
    assert not User.objects.get(id=cast.reviewer.id).is_active
