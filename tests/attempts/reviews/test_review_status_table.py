"""Every status and every verb, from one table; and doors that never decide."""

from typing import Any

import pytest
from django.db import transaction

from attempts.intake.services.follow_up import attempt_cancel
from attempts.reviews.services.clock import reviews_expire
from attempts.reviews.services.human_review import human_review_end
from attempts.reviews.states import ReviewKind, ReviewStatus
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    JUDGING,
    RELEASING,
    REVIEWER,
    VERBS,
    Clinic,
    ask,
    ask_task,
    do,
    problem,
    set_deadline,
    status_of,
    url,
)
from tests.cast import Cast
from tests.contract.world import undone
from tests.governance.support import governed_counts

OVER, EXPIRED, WRONG = (409, "review-over"), (409, "review-expired"), (409, "wrong-state")
DECISIONS = {"release": RELEASING, "human_review": JUDGING, "human_task": (*RELEASING, "decline", "decide")}
ENDS = {
    "release": {"approved": OVER, "rejected": OVER, "canceled": OVER, "expired": EXPIRED},
    "human_review": {"confirmed": OVER, "overridden": OVER, "canceled": OVER, "expired": EXPIRED},
    "human_task": {"approved": OVER, "rejected": OVER, "decided": OVER, "canceled": OVER, "expired": EXPIRED},
}
REQUESTED = {"claim": (200, ""), "release": WRONG, "delegate": (201, "")}


def expected(kind: str, status: str, verb: str) -> tuple[int, str]:
    """Deciding on what is over is refused as such, whichever verb it is; a verb of the other kind fits nothing."""
    if status == "requested":
        return REQUESTED.get(verb) or ((200, "") if verb in DECISIONS[kind] else WRONG)
    return WRONG if verb in REQUESTED else ENDS[kind][status]


EXPECTED = {
    (kind, status, verb): expected(kind, status, verb)
    for kind, ends in ENDS.items()
    for status in ("requested", *ends)
    for verb in VERBS
}
BY_VOTE = {
    "approved": "approve",
    "rejected": "reject",
    "confirmed": "confirm",
    "overridden": "override",
    "decided": "decide",
}
ASKING = {"human_review": ask, "human_task": ask_task}


def bring_to(kind: str, status: str, cast: Cast, clinic: Clinic, other: Any) -> Any:
    review = clinic.hold() if kind == "release" else ASKING[kind](cast)
    if status in BY_VOTE:
        assert do(other, review, BY_VOTE[status]).status_code == 200
    if status == "expired":
        now = set_deadline(review, seconds=-1)
        assert reviews_expire(at=now) == 1
    if status == "canceled":
        cancel(cast, review)
    return review


def cancel(cast: Cast, review: Any) -> None:
    who = {"actor": cast.actor(cast.operator, [cast.organization]), "at": review.requested_at}
    with every_tenant(), transaction.atomic():
        if review.attempt_id:
            attempt_cancel(attempt_id=review.attempt_id, **who)
        else:
            human_review_end(origin_step=review.origin_step, reason_code="superseded", **who)


def test_the_table_is_complete() -> None:
    assert {status for _, status, _ in EXPECTED} == {status.value for status in ReviewStatus}
    assert {kind for kind, _, _ in EXPECTED} == {kind.value for kind in ReviewKind}
    assert {verb for _, _, verb in EXPECTED} == set(VERBS)


@pytest.mark.parametrize(("kind", "status"), list(dict.fromkeys(row[:2] for row in EXPECTED)))
def test_what_a_verb_does_in_a_status(cast: Cast, clinic: Clinic, rita: Any, sam: Any, kind: str, status: str) -> None:
    cast.person("dora", REVIEWER)
    review = bring_to(kind, status, cast, clinic, sam)
    assert status_of(review)[0] == status
    before = status_of(review)
    for verb in VERBS:
        code, problem_type = EXPECTED[kind, status, verb]
        with undone():
            answer = do(rita, review, verb)
            assert answer.status_code == code, (verb, answer.content)
            if problem_type:
                assert problem(answer) == (code, problem_type)
                assert status_of(review) == before


def test_no_other_method_does_anything_at_a_deciding_door(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    before = governed_counts()
    for verb in VERBS:
        for method in ("get", "head", "options", "put", "patch", "delete"):
            assert getattr(rita, method)(url(review, verb)).status_code in {403, 405}, (method, verb)
    assert governed_counts() == before


@pytest.mark.parametrize(("method", "status"), [("get", 200), ("head", 200), ("options", 204)])
def test_reading_writes_nothing_not_even_about_an_overdue_review(
    clinic: Clinic, rita: Any, sam: Any, method: str, status: int
) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-1)
    before = governed_counts()
    for address in (url(review), "/api/v1/reviews", "/api/v1/reviews?status=requested"):
        assert getattr(rita, method)(address).status_code == status
    assert (governed_counts(), status_of(review)[0]) == (before, "requested")
