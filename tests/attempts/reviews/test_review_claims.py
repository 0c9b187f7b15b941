"""Claims: a lease of fifteen minutes on a card."""

from datetime import timedelta
from typing import Any

from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import database_now
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import Clinic, actions, do, problem, set_deadline, status_of, url, violations
from tests.cast import Cast


def let_the_claim_run_out(review: Review) -> None:
    with every_tenant():
        Review.objects.filter(id=review.id).update(claimed_until=database_now() - timedelta(seconds=1))


def test_a_claim_lasts_fifteen_minutes_by_the_databases_clock_and_is_on_record(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    answer = do(rita, review, "claim")
    assert answer.status_code == 200, answer.content
    assert answer.json()["claim"]["username"] == "rita"
    with every_tenant():
        until = Review.objects.get(id=review.id).claimed_until
    assert until is not None
    assert timedelta(minutes=14) < until - database_now() <= timedelta(minutes=15)
    assert actions(review) == ["review.claimed"]


def test_somebody_elses_live_claim_keeps_others_from_claiming_and_deciding(clinic: Clinic, rita: Any, sam: Any) -> None:
    review = clinic.hold()
    do(rita, review, "claim")
    for verb in ("claim", "release", "approve", "reject"):
        assert problem(do(sam, review, verb)) == (409, "review-claimed")
    assert sam.get(url(review)).json()["may_decide"] == {
        "allowed": False,
        "verdicts": [],
        "reason": "review_claimed",
        "detail": "Somebody else has claimed this review and is deciding on it.",
        "on_behalf_of": None,
        "stands_in_for": [],
    }
    assert violations() == []
    assert do(rita, review, "claim").status_code == 200
    assert do(rita, review, "approve").status_code == 200


def test_a_claim_that_ran_out_or_was_released_is_free_again(clinic: Clinic, rita: Any, sam: Any) -> None:
    review = clinic.hold()
    do(rita, review, "claim")
    let_the_claim_run_out(review)
    assert sam.get(url(review)).json()["claim"] is None
    assert do(sam, review, "claim").status_code == 200
    assert problem(do(rita, review, "release")) == (409, "review-claimed")
    released = do(sam, review, "release")
    assert (released.status_code, released.json()["claim"]) == (200, None)
    assert problem(do(sam, review, "release")) == (409, "wrong-state")
    assert do(rita, review, "approve").status_code == 200
    assert actions(review)[:3] == ["review.claimed", "review.claimed", "review.released"]


def test_where_two_must_approve_a_claim_is_only_a_sign(two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "claim")
    assert problem(do(sam, review, "claim")) == (409, "review-claimed")
    assert do(sam, review, "approve").status_code == 200
    assert rita.get(url(review)).json()["claim"]["username"] == "rita"
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review)[0] == "approved"


def test_voting_gives_the_voters_claim_back(two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "claim")
    assert do(rita, review, "approve").json()["claim"] is None
    assert do(sam, review, "claim").status_code == 200


def test_who_may_not_decide_may_not_claim(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    assert problem(do(cast.session(clinic.responsible), review, "claim")) == (403, "own-work")


def test_a_claim_does_not_keep_a_review_from_expiring(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    do(rita, review, "claim")
    set_deadline(review, seconds=-1)
    assert problem(do(rita, review, "claim")) == (409, "wrong-state")
    assert problem(do(rita, review, "approve")) == (409, "review-expired")


def test_the_queue_can_be_asked_for_mine_and_for_what_nobody_has(clinic: Clinic, rita: Any, sam: Any) -> None:
    mine, free = clinic.hold(), clinic.hold()
    do(rita, mine, "claim")

    def listed(client: Any, assigned: str) -> list[str]:
        return [row["id"] for row in client.get(f"/api/v1/reviews?assigned={assigned}").json()["results"]]

    assert listed(rita, "me") == [str(mine.id)]
    assert listed(sam, "me") == []
    assert listed(sam, "unclaimed") == [str(free.id)]
    let_the_claim_run_out(mine)
    assert (listed(rita, "me"), len(listed(sam, "unclaimed"))) == ([], 2)
