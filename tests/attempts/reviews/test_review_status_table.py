"""Every status and every verb, from one table; and doors that never decide."""

from typing import Any

import pytest

from attempts.services.attempt_cancel import attempt_cancel
from attempts.services.review_tick import reviews_expire
from attempts.states import ReviewStatus
from reasoncodes.tenancy import every_tenant
from tests.attempts.reviews.support import VERBS, Clinic, do, problem, set_deadline, status_of, url
from tests.cast import Cast
from tests.governance.support import row_counts

TOO_LATE = {
    "approved": (409, "review-over"),
    "rejected": (409, "review-over"),
    "canceled": (409, "review-over"),
    "expired": (409, "review-expired"),
}
EXPECTED: dict[tuple[str, str], tuple[int, str]] = {
    ("requested", "claim"): (200, ""),
    ("requested", "release"): (409, "wrong-state"),
    ("requested", "delegate"): (201, ""),
    ("requested", "approve"): (200, ""),
    ("requested", "reject"): (200, ""),
    **{(status, verb): (409, "wrong-state") for status in TOO_LATE for verb in ("claim", "release", "delegate")},
    **{(status, verb): answer for status, answer in TOO_LATE.items() for verb in ("approve", "reject")},
}


def bring_to(status: str, cast: Cast, clinic: Clinic, other: Any) -> Any:
    review = clinic.hold()
    if status in {"approved", "rejected"}:
        assert do(other, review, {"approved": "approve", "rejected": "reject"}[status]).status_code == 200
    if status == "expired":
        now = set_deadline(review, seconds=-1)
        assert reviews_expire(at=now) == 1
    if status == "canceled":
        actor = cast.actor(cast.operator, [cast.organization])
        with every_tenant():
            attempt_cancel(actor=actor, at=review.requested_at, attempt_id=review.attempt_id)
    return review


def test_the_table_is_complete() -> None:
    assert set(EXPECTED) == {(status.value, verb) for status in ReviewStatus for verb in VERBS}


@pytest.mark.parametrize(("status", "verb"), list(EXPECTED), ids=[f"{s}-{v}" for s, v in EXPECTED])
def test_what_a_verb_does_in_a_status(cast: Cast, clinic: Clinic, rita: Any, sam: Any, status: str, verb: str) -> None:
    cast.person("dora", "operator")
    review = bring_to(status, cast, clinic, sam)
    assert status_of(review)[0] == status
    before = status_of(review)
    answer = do(rita, review, verb)
    code, kind = EXPECTED[status, verb]
    assert answer.status_code == code, answer.content
    if kind:
        assert problem(answer) == (code, kind)
        assert status_of(review) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("method", ["get", "head", "options", "put", "patch", "delete"])
def test_no_other_method_does_anything_at_a_deciding_door(clinic: Clinic, rita: Any, verb: str, method: str) -> None:
    review = clinic.hold()
    before = row_counts()
    assert getattr(rita, method)(url(review, verb)).status_code in {403, 405}
    assert row_counts() == before


@pytest.mark.parametrize("method", ["get", "head", "options"])
def test_reading_writes_nothing_not_even_about_an_overdue_review(
    clinic: Clinic, rita: Any, sam: Any, method: str
) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-1)
    before = row_counts()
    for address in (url(review), "/api/v1/reviews", "/api/v1/reviews?status=requested"):
        assert getattr(rita, method)(address).status_code == 200
    assert (row_counts(), status_of(review)[0]) == (before, "requested")
