"""Races on real connections, repeated: a review ends once, one way, and its attempt with it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from attempts.reviews.selectors.reviews import review_lock
from attempts.reviews.services.clock import reviews_expire
from governance.people.services.people import person_role_take
from governance.shutdown.models import Shutdown
from governance.shutdown.services import shutdown_engage, shutdown_release
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    at_once,
    do,
    set_deadline,
    status_of,
    votes,
)
from tests.cast import Cast
from tests.governance.support import in_parallel

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 12
ENDS = {"review.approved", "review.rejected", "review.expired", "review.canceled"}
OUTCOMES = {
    "approved": ("approved", "approved-for-execution", ""),
    "rejected": ("rejected", "preflight-denied", "review_rejected"),
    "expired": ("expired", "preflight-denied", "review_expired"),
    "canceled": ("canceled", "preflight-denied", "cancelled_by_caller"),
}


class Scene:
    """Holds, and reviewers who are signed in, each with a client of their own."""

    def __init__(self, *, approvals: int = 1) -> None:
        self.cast = Cast()
        self.clinic = Clinic(self.cast, approvals=approvals)
        self.rita = self.cast.session(self.cast.reviewer)
        self.sam = self.cast.session(self.cast.person("sam", REVIEWER))

    def again(self, client: Any) -> Any:
        """The same person in a second window."""
        other = self.cast.session(self.cast.reviewer)
        other.cookies = client.cookies
        return other

    def shutdown(self, *, after: float = 0) -> Shutdown:
        time.sleep(after)
        with every_tenant():
            return shutdown_engage(
                actor=self.cast.actor(self.cast.operator, [self.cast.organization]),
                at=timezone.now(),
                scope=ShutdownScope.CONTRACT,
                organization_id=self.cast.organization.id,
                target="close-case",
                reason_code="rehearsal",
            )

    def reopen(self, shutdown: Shutdown) -> None:
        second = self.cast.person("second", "operator")
        with every_tenant():
            actor = self.cast.actor(second, [self.cast.organization])
            shutdown_release(actor=actor, at=timezone.now(), shutdown_id=shutdown.id)


def ended_once(review: Any, answers: list[int]) -> str:
    """The outcome, which review, attempt, record and answers agree on."""
    outcome, _, _ = status_of(review)
    assert status_of(review) == OUTCOMES[outcome]
    ends = [action for action in actions(review) if action in ENDS]
    assert ends == [f"review.{outcome}"]
    assert all(answer < 500 for answer in answers), answers
    return outcome


def tick_for_a_while() -> None:
    for _ in range(20):
        reviews_expire(at=timezone.now())
        time.sleep(0.002)


def test_approve_against_expire() -> None:
    scene = Scene()
    outcomes = []
    for number in range(ROUNDS):
        review = scene.clinic.hold()
        set_deadline(review, seconds=0.004 * number)
        answer, _ = at_once(
            lambda review=review: do(scene.rita, review, "approve").status_code,
            tick_for_a_while,
        )
        reviews_expire(at=timezone.now())
        outcome = ended_once(review, [answer])
        assert (answer, votes(review)) == ((200, ["approve"]) if outcome == "approved" else (409, []))
        outcomes.append(outcome)
    assert "expired" in outcomes


def test_approve_against_reject() -> None:
    scene = Scene()
    for _ in range(ROUNDS):
        review = scene.clinic.hold()
        answers = at_once(
            lambda review=review: do(scene.rita, review, "approve").status_code,
            lambda review=review: do(scene.sam, review, "reject").status_code,
        )
        outcome = ended_once(review, answers)
        assert answers == ([200, 409] if outcome == "approved" else [409, 200])
        assert len(votes(review)) == 1


def test_two_people_approving_at_once_meet_a_quorum_of_two() -> None:
    scene = Scene(approvals=2)
    for _ in range(ROUNDS):
        review = scene.clinic.hold()
        answers = at_once(
            lambda review=review: do(scene.rita, review, "approve").status_code,
            lambda review=review: do(scene.sam, review, "approve").status_code,
        )
        assert answers == [200, 200]
        assert ended_once(review, answers) == "approved"
        assert votes(review) == ["approve", "approve"]


def test_one_person_approving_twice_at_once_never_meets_a_quorum_of_two() -> None:
    scene = Scene(approvals=2)
    windows = [scene.rita, *(scene.again(scene.rita) for _ in range(3))]
    for _ in range(ROUNDS):
        review = scene.clinic.hold()
        answers = at_once(
            *(lambda review=review, window=window: do(window, review, "approve").status_code for window in windows)
        )
        assert sorted(answers) == [200, 409, 409, 409]
        assert status_of(review) == ("requested", "review-required", "review_required")
        assert votes(review) == ["approve"]


def test_approve_against_cancel() -> None:
    """Cancelling is possible after the approval too, as long as nothing was leased: then both happened, in order."""
    scene = Scene()
    for _ in range(ROUNDS):
        review = scene.clinic.hold()
        cancel = f"/api/v1/attempts/{review.attempt_id}/cancel"
        answers = at_once(
            lambda review=review: do(scene.rita, review, "approve").status_code,
            lambda cancel=cancel: scene.clinic.caller.post(cancel, {}, format="json").status_code,
        )
        assert answers in ([200, 200], [409, 200]), answers
        status, state, reason = status_of(review)
        assert (state, reason) == ("preflight-denied", "cancelled_by_caller")
        ends = [action for action in actions(review) if action in ENDS]
        assert ends == [f"review.{status}"]
        assert status == ("approved" if answers[0] == 200 else "canceled")


def test_approve_against_a_shutdown() -> None:
    """What was approved before it is released, what comes after is not; nothing in between, and no later approval."""
    scene = Scene()
    for number in range(ROUNDS):
        reviews = [scene.clinic.hold() for _ in range(3)]
        answers, shutdown = at_once(
            lambda reviews=reviews: [do(scene.rita, review, "approve").status_code for review in reviews],
            lambda number=number: scene.shutdown(after=0.01 * number),
        )
        for review, answer in zip(reviews, answers, strict=True):
            released = status_of(review) == OUTCOMES["approved"]
            assert (answer, len(votes(review))) == ((200, 1) if released else (409, 0))
        assert answers == sorted(answers), "once it is refused it stays refused"
        waiting = [review for review, answer in zip(reviews, answers, strict=True) if answer == 409]
        assert all(do(scene.sam, review, "approve").status_code == 409 for review in waiting)
        scene.reopen(shutdown)
        assert all(do(scene.sam, review, "approve").status_code == 200 for review in waiting)


def while_somebody_holds_the_lock(review: Any, meanwhile: Callable[[], Any], waiting: Callable[[], Any]) -> Any:
    """`waiting` starts and blocks on the attempt's lock; `meanwhile` commits; then the lock is let go."""
    locked, done = threading.Event(), threading.Event()

    def holder() -> None:
        with every_tenant(), transaction.atomic():
            review_lock(review_id=review.id)
            locked.set()
            assert done.wait(20)

    def waiter() -> Any:
        assert locked.wait(20)
        return waiting()

    def other() -> None:
        assert locked.wait(20)
        wait_until_somebody_waits()
        try:
            meanwhile()
        finally:
            done.set()

    return in_parallel(holder, waiter, other)[1]


def wait_until_somebody_waits() -> None:
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("nobody waited for the lock")


def test_a_vote_that_waited_sees_the_shutdown_that_came_meanwhile() -> None:
    scene = Scene()
    review = scene.clinic.hold()
    answer = while_somebody_holds_the_lock(review, scene.shutdown, lambda: do(scene.rita, review, "approve"))
    assert (answer.status_code, answer.json()["reason_code"]) == (409, "shutdown_engaged")
    assert votes(review) == []


def test_a_vote_that_waited_sees_that_the_role_is_gone() -> None:
    scene = Scene()
    review = scene.clinic.hold()

    def take() -> None:
        with every_tenant():
            person_role_take(
                actor=SYSTEM,
                at=timezone.now(),
                user=scene.cast.reviewer,
                organization=scene.cast.organization,
                role=REVIEWER,
            )

    answer = while_somebody_holds_the_lock(review, take, lambda: do(scene.rita, review, "approve"))
    assert answer.status_code == 403
    assert status_of(review)[0] == "requested"


def test_a_vote_that_waited_past_the_deadline_is_too_late() -> None:
    """By the clock at the moment of deciding, not at the start of the transaction."""
    scene = Scene()
    review = scene.clinic.hold()
    set_deadline(review, seconds=1.5)
    answer = while_somebody_holds_the_lock(
        review, lambda: time.sleep(2), lambda: do(scene.rita, review, "approve").status_code
    )
    assert answer == 409
    assert status_of(review) == OUTCOMES["expired"]


def test_a_tick_does_not_wait_for_whoever_is_deciding() -> None:
    scene = Scene()
    busy, free = scene.clinic.hold(), scene.clinic.hold()
    for review in (busy, free):
        set_deadline(review, seconds=-1)
    locked, done = threading.Event(), threading.Event()

    def holder() -> None:
        with every_tenant(), transaction.atomic():
            review_lock(review_id=busy.id)
            locked.set()
            assert done.wait(20)

    def tick() -> int:
        assert locked.wait(20)
        try:
            return reviews_expire(at=timezone.now())
        finally:
            done.set()

    assert in_parallel(holder, tick)[1] == 1
    assert (status_of(busy)[0], status_of(free)[0]) == ("requested", "expired")
    assert reviews_expire(at=timezone.now()) == 1
