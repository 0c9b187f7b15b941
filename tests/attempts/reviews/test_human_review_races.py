"""Races on real connections, repeated: a human review ends once, one way, and its step is told once."""

import time
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.lifecycle import hooks as handlers
from attempts.reviews.services.clock import reviews_expire
from attempts.reviews.services.human_review import human_review_end
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, actions, ask, at_once, do, set_deadline, status_of, votes
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 12
ENDS = {"review.confirmed", "review.overridden", "review.expired", "review.canceled"}


class Scene:
    def __init__(self, monkeypatch: Any) -> None:
        self.cast = Cast()
        self.rita = self.cast.session(self.cast.reviewer)
        self.sam = self.cast.session(self.cast.person("sam", REVIEWER))
        self.told: list[tuple[Any, str]] = []
        monkeypatch.setattr(handlers, "_review_ended", [])
        handlers.on_review_ended(lambda review, *, new, **_: self.told.append((review.id, new)))

    def ended_once(self, review: Any, answers: list[int]) -> str:
        outcome = status_of(review)[0]
        assert [action for action in actions(review) if action in ENDS] == [f"review.{outcome}"]
        assert all(answer < 500 for answer in answers), answers
        heard = [new for row_id, new in self.told if row_id == review.id]
        assert heard == ([] if outcome == "canceled" else [outcome])
        return outcome


@pytest.fixture
def scene(monkeypatch: Any) -> Scene:
    return Scene(monkeypatch)


def test_two_people_confirming_at_once(scene: Scene) -> None:
    for _ in range(ROUNDS):
        review = ask(scene.cast)
        answers = at_once(
            lambda review=review: do(scene.rita, review, "confirm").status_code,
            lambda review=review: do(scene.sam, review, "confirm").status_code,
        )
        assert sorted(answers) == [200, 409]
        assert scene.ended_once(review, answers) == "confirmed"
        assert votes(review) == ["confirm"]


def test_confirm_against_override(scene: Scene) -> None:
    for _ in range(ROUNDS):
        review = ask(scene.cast)
        answers = at_once(
            lambda review=review: do(scene.rita, review, "confirm").status_code,
            lambda review=review: do(scene.sam, review, "override").status_code,
        )
        outcome = scene.ended_once(review, answers)
        assert answers == ([200, 409] if outcome == "confirmed" else [409, 200])
        assert len(votes(review)) == 1


def test_confirm_against_decline(scene: Scene) -> None:
    """Both may happen, the decline first; the other way round it came too late."""
    for _ in range(ROUNDS):
        review = ask(scene.cast)
        answers = at_once(
            lambda review=review: do(scene.rita, review, "confirm").status_code,
            lambda review=review: do(scene.sam, review, "decline").status_code,
        )
        assert scene.ended_once(review, answers) == "confirmed"
        assert (answers, votes(review)) in (
            ([200, 200], ["decline", "confirm"]),
            ([200, 409], ["confirm"]),
        )


def test_one_person_declining_in_two_windows_declines_once(scene: Scene) -> None:
    second = scene.cast.session(scene.cast.reviewer)
    for _ in range(ROUNDS):
        review = ask(scene.cast)
        answers = at_once(
            lambda review=review: do(scene.rita, review, "decline").status_code,
            lambda review=review: do(second, review, "decline").status_code,
        )
        assert sorted(answers) == [200, 409]
        assert (status_of(review)[0], votes(review)) == ("requested", ["decline"])
        assert actions(review).count("review.requeued") == 1


def test_confirm_against_expire(scene: Scene) -> None:
    def tick_for_a_while() -> None:
        for _ in range(20):
            reviews_expire(at=timezone.now())
            time.sleep(0.002)

    outcomes = []
    for number in range(ROUNDS):
        review = ask(scene.cast)
        set_deadline(review, seconds=0.004 * number)
        answer, _ = at_once(
            lambda review=review: do(scene.rita, review, "confirm").status_code,
            tick_for_a_while,
        )
        reviews_expire(at=timezone.now())
        outcome = scene.ended_once(review, [answer])
        assert (answer, votes(review)) == ((200, ["confirm"]) if outcome == "confirmed" else (409, []))
        outcomes.append(outcome)
    assert "expired" in outcomes


def test_confirm_against_the_end_of_the_step(scene: Scene) -> None:
    def end(review: Any) -> int:
        with every_tenant(), transaction.atomic():
            ended = human_review_end(
                origin_step=review.origin_step, actor=SYSTEM, at=timezone.now(), reason_code="superseded"
            )
        return 200 if ended is not None else 409

    for _ in range(ROUNDS):
        review = ask(scene.cast)
        answers = at_once(
            lambda review=review: do(scene.rita, review, "confirm").status_code,
            lambda review=review: end(review),
        )
        assert sorted(answers) == [200, 409]
        outcome = scene.ended_once(review, answers)
        assert outcome == ("confirmed" if answers[0] == 200 else "canceled")
