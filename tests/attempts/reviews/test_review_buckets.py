"""Two clinicians and one of quality, all different people: several tiers that must sign, over HTTP."""

from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from attempts.reviews import tasks
from attempts.reviews.models import Review
from attempts.reviews.services.clock import reviews_remind
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    at_once,
    do,
    problem,
    status_of,
    url,
    violations,
    votes,
)
from tests.cast import Cast

QUALITY = "reviewer:sa_qa"
BUCKETS = [{"tier": "customer_clinician", "approvals_required": 2}, {"tier": "sa_qa", "approvals_required": 1}]
ONE_EACH = [{"tier": "customer_clinician"}, {"tier": "sa_qa"}]
APPROVED = ("approved", "approved-for-execution", "")
WAITING = ("requested", "review-required", "review_required")


@pytest.fixture
def board(cast: Cast) -> Clinic:
    return Clinic(cast, buckets=BUCKETS)


@pytest.fixture
def quinn(cast: Cast) -> Any:
    """Of quality."""
    return cast.session(cast.person("quinn", QUALITY))


@pytest.fixture
def bea(cast: Cast) -> Any:
    """Has both roles."""
    return cast.session(cast.person("bea", REVIEWER, QUALITY))


def progress(client: Any, review: Review) -> list[tuple[str, int, int]]:
    card = client.get(url(review)).json()
    return [(row["tier"], row["approvals"], row["missing"]) for row in card["quorum"]["by_tier"]]


def queue(client: Any, query: str) -> list[str]:
    return [row["id"] for row in client.get(f"/api/v1/reviews?{query}").json()["results"]]


def take(cast: Cast, username: str, role: str) -> None:
    user = User.objects.get(username=username)
    with every_tenant():
        person_role_take(actor=SYSTEM, at=timezone.now(), user=user, organization=cast.organization, role=role)


def test_it_is_released_when_every_tier_has_signed(board: Clinic, rita: Any, sam: Any, quinn: Any) -> None:
    review = board.hold()
    assert progress(rita, review) == [("customer_clinician", 0, 2), ("sa_qa", 0, 1)]
    for client in (rita, quinn):
        assert do(client, review, "approve").status_code == 200
        assert status_of(review) == WAITING
    assert progress(rita, review) == [("customer_clinician", 1, 1), ("sa_qa", 1, 0)]
    assert do(sam, review, "approve").status_code == 200
    assert status_of(review) == APPROVED
    assert actions(review) == ["review.voted"] * 3 + ["review.approved", "attempt.approved"]
    with every_tenant():
        entries = LedgerEntry.objects.filter(subject_id=review.id, action="review.voted").order_by("id")
        assert [entry.payload["by_tier"] for entry in entries][-1] == {"customer_clinician": 2, "sa_qa": 1}


def test_whoever_asks_is_told_which_tiers_must_sign_and_so_is_the_record(board: Clinic) -> None:
    review = board.hold()
    assert (review.tier, review.approvals_required, review.buckets) == ("customer_clinician", 3, BUCKETS)
    with every_tenant():
        decision = EnforcementDecision.objects.get()
    assert decision.approval == {
        "tier": "customer_clinician",
        "approvals_required": 3,
        "expires_in_seconds": 3600,
        "buckets": BUCKETS,
    }
    answer = board.caller.get(f"/api/v1/attempts/{review.attempt_id}/decision").json()
    words = {row["evaluator"]: row["explanation"] for row in answer["evaluators"]}["policy"]
    assert "all different people: 2 of customer_clinician, 1 of sa_qa." in words


def test_one_person_with_both_roles_fills_one_place_only(cast: Cast, bea: Any, rita: Any) -> None:
    review = Clinic(cast, buckets=ONE_EACH).hold()
    assert do(bea, review, "approve").status_code == 200
    assert status_of(review) == WAITING
    assert problem(do(bea, review, "approve")) == (409, "already-voted")
    assert violations() == ["second_person_missing"]
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review) == APPROVED


def test_who_has_both_roles_is_counted_where_it_helps(board: Clinic, bea: Any, rita: Any, sam: Any) -> None:
    """She signs first and sits with the clinicians; two who are clinicians only come after her."""
    review = board.hold()
    for client in (bea, rita):
        assert do(client, review, "approve").status_code == 200
    assert progress(rita, review) == [("customer_clinician", 2, 0), ("sa_qa", 0, 1)]
    assert do(sam, review, "approve").status_code == 200
    assert status_of(review) == APPROVED


def test_a_tier_that_has_signed_may_still_reject_and_not_approve(
    cast: Cast, board: Clinic, rita: Any, sam: Any
) -> None:
    review = board.hold()
    for client in (rita, sam):
        do(client, review, "approve")
    tess = cast.session(cast.person("tess", REVIEWER))
    may = tess.get(url(review)).json()["may_decide"]
    assert (may["allowed"], may["verdicts"]) == (True, ["reject"])
    assert problem(do(tess, review, "approve")) == (409, "tier-complete")
    assert (status_of(review), votes(review), violations()) == (WAITING, ["approve", "approve"], [])
    assert do(tess, review, "reject").status_code == 200
    assert status_of(review) == ("rejected", "preflight-denied", "review_rejected")


def test_a_place_is_free_again_when_who_signed_lost_the_role(cast: Cast, board: Clinic, rita: Any, sam: Any) -> None:
    review = board.hold()
    for client in (rita, sam):
        do(client, review, "approve")
    take(cast, "rita", REVIEWER)
    assert progress(sam, review) == [("customer_clinician", 1, 1), ("sa_qa", 0, 1)]
    tess = cast.session(cast.person("tess", REVIEWER))
    assert do(tess, review, "approve").status_code == 200
    assert progress(sam, review) == [("customer_clinician", 2, 0), ("sa_qa", 0, 1)]


@pytest.mark.parametrize("role", ["auditor", "operator", "owner:privacy", "reviewer:other_tier"])
def test_a_member_of_none_of_the_tiers_does_not_decide(cast: Cast, board: Clinic, role: str) -> None:
    review = board.hold()
    refused = do(cast.session(cast.person("wrong", role)), review, "approve")
    assert problem(refused) == (403, "not-a-reviewer")
    assert "customer_clinician and the tier sa_qa" in refused.json()["detail"]
    assert violations() == ["unauthorized_decision"]


def test_the_queue_of_a_tier_shows_what_still_needs_its_signature(
    cast: Cast, board: Clinic, rita: Any, sam: Any, quinn: Any
) -> None:
    review = board.hold()
    here = [str(review.id)]
    assert queue(rita, "tier=customer_clinician") == queue(quinn, "tier=sa_qa") == here
    assert queue(rita, "tier=other") == []
    do(rita, review, "approve")
    assert queue(sam, "tier=customer_clinician") == here
    do(sam, review, "approve")
    assert queue(rita, "tier=customer_clinician") == []
    assert queue(quinn, "tier=sa_qa&status=requested") == here
    line = quinn.get("/api/v1/reviews").json()["results"][0]
    assert line["parts"] == BUCKETS
    do(quinn, review, "approve")
    for tier in ("customer_clinician", "sa_qa"):
        assert queue(rita, f"tier={tier}&status=approved") == here


def test_a_reminder_goes_to_who_may_still_sign_and_puts_the_queue_right(
    cast: Cast, board: Clinic, rita: Any, sam: Any, quinn: Any
) -> None:
    review = board.hold()
    for client in (rita, sam):
        do(client, review, "approve")
    take(cast, "rita", REVIEWER)
    tess = cast.person("tess", REVIEWER)
    User.objects.filter(username__in=["rita", "sam", "boss"]).update(email="done@clinic.invalid")
    User.objects.filter(username__in=["tess", "quinn"]).update(email="missing@clinic.invalid")
    assert queue(cast.session(tess), "tier=customer_clinician") == []
    with every_tenant():
        Review.objects.update(remind_at=timezone.now())
    assert reviews_remind(at=timezone.now()) == 1
    assert queue(cast.session(tess), "tier=customer_clinician") == [str(review.id)]
    tasks.review_reminder_send_task(str(review.id))
    assert {message.to[0] for message in mail.outbox} == {"missing@clinic.invalid"}
    assert len(mail.outbox) == 2
    assert "customer_clinician and sa_qa" in mail.outbox[0].body


@pytest.mark.parametrize(("left", "escalated"), [(["bea"], 1), (["bea", "quinn"], 0)])
def test_it_escalates_when_those_who_are_left_cannot_fill_all_places(
    cast: Cast, left: list[str], escalated: int
) -> None:
    """Somebody works on it; but one person with both roles is one person."""
    clinic = Clinic(cast, buckets=ONE_EACH)
    review = clinic.hold()
    clients = {name: cast.session(cast.person(name, QUALITY)) for name in left}
    cast.person("bea", REVIEWER)
    assert do(clients["bea"], review, "claim").status_code == 200
    with every_tenant():
        Review.objects.update(remind_at=timezone.now())
    assert reviews_remind(at=timezone.now()) == 1
    with every_tenant():
        assert LedgerEntry.objects.get(action="review.reminded").payload["escalated_to"] == escalated


def test_card_and_explain_say_what_is_missing_and_who_may_still_sign(
    cast: Cast, board: Clinic, rita: Any, quinn: Any, bea: Any
) -> None:
    """Not who asked, who signed or who has no role. A delegation changes nothing about it."""
    cast.person("sam", REVIEWER)
    cast.person("dora", "reviewer:sa_qa")
    review = board.hold()
    assert do(quinn, review, "delegate").status_code == 201
    do(rita, review, "approve")
    expected = [
        {
            "tier": "customer_clinician",
            "approvals_required": 2,
            "approvals": 1,
            "missing": 1,
            "may_sign": ["bea", "sam"],
        },
        {
            "tier": "sa_qa",
            "approvals_required": 1,
            "approvals": 0,
            "missing": 1,
            "may_sign": ["bea", "dora", "quinn"],
        },
    ]
    assert rita.get(url(review)).json()["quorum"]["by_tier"] == expected
    explained = board.caller.get(f"/api/v1/attempts/{review.attempt_id}/explain").json()
    obstacle = next(row for row in explained["obstacles"] if row["kind"] == "review")
    assert obstacle["detail"] == ("1 more approval(s) by customer_clinician and 1 more approval(s) by sa_qa needed")
    assert obstacle["facts"]["by_tier"] == expected


def test_a_delegation_is_of_one_tier_to_somebody_who_has_it(cast: Cast, board: Clinic, bea: Any, rita: Any) -> None:
    """Bea has both roles, and somebody stands in for one of them."""
    review = board.hold()
    cast.person("dora", REVIEWER)
    assert problem(do(bea, review, "delegate", tier="sa_qa")) == (403, "delegate-without-tier")
    cast.person("dora", "reviewer:sa_qa")
    assert do(bea, review, "delegate", tier="sa_qa").json()["tier"] == "sa_qa"
    dora = cast.session(cast.person("dora"))
    assert dora.get(url(review)).json()["may_decide"]["stands_in_for"] == ["bea"]


def test_a_delegation_without_a_tier_is_of_the_one_that_the_giver_has(board: Clinic, cast: Cast, quinn: Any) -> None:
    cast.person("dora", "reviewer:sa_qa")
    assert do(quinn, board.hold(), "delegate").json()["tier"] == "sa_qa"


def test_a_clinician_cannot_be_given_a_vote_of_quality(
    cast: Cast, board: Clinic, rita: Any, sam: Any, quinn: Any
) -> None:
    review = board.hold()
    tess = cast.session(cast.person("tess", REVIEWER))
    assert problem(do(quinn, review, "delegate", to_username="tess")) == (403, "delegate-without-tier")
    for client in (rita, sam):
        do(client, review, "approve")
    assert problem(do(tess, review, "approve")) == (409, "tier-complete")
    assert status_of(review)[0] == "requested"


def test_a_tier_that_the_organization_added_signs_like_the_others(cast: Cast, rita: Any) -> None:
    privacy = cast.session(cast.person("prue", "reviewer:privacy"))
    review = Clinic(cast, buckets=[{"tier": "customer_clinician"}, {"tier": "privacy"}]).hold()
    assert do(privacy, review, "approve").status_code == 200
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review) == APPROVED


def test_the_console_shows_the_tiers(cast: Cast, board: Clinic, rita: Any) -> None:
    review = board.hold()
    do(rita, review, "approve")
    console = cast.console(cast.operator)
    assert "1 of 3 (2 customer_clinician and 1 sa_qa)" in console.get("/admin/attempts/review/").content.decode()
    with every_tenant():
        decision = EnforcementDecision.objects.get()
    page = console.get(f"/admin/governance/enforcementdecision/{decision.id}/change/").content.decode()
    assert "2 of customer_clinician and 1 of sa_qa, within 1 h" in page


@pytest.mark.django_db(transaction=True)
def test_two_of_one_tier_at_once_fill_its_one_place_once_and_never_the_other() -> None:
    cast = Cast()
    clinic = Clinic(cast, buckets=ONE_EACH)
    rita, sam = cast.session(cast.reviewer), cast.session(cast.person("sam", REVIEWER))
    for _ in range(12):
        review = clinic.hold()
        answers = at_once(
            lambda review=review: do(rita, review, "approve").status_code,
            lambda review=review: do(sam, review, "approve").status_code,
        )
        assert sorted(answers) == [200, 409]
        assert (status_of(review), votes(review)) == (WAITING, ["approve"])


@pytest.mark.django_db(transaction=True)
def test_one_person_with_both_roles_at_once_in_four_windows_never_meets_it() -> None:
    cast = Cast()
    clinic = Clinic(cast, buckets=ONE_EACH)
    both = cast.person("bea", REVIEWER, QUALITY)
    windows = [cast.session(both) for _ in range(4)]
    for _ in range(12):
        review = clinic.hold()
        answers = at_once(
            *(lambda review=review, window=window: do(window, review, "approve").status_code for window in windows)
        )
        assert sorted(answers) == [200, 409, 409, 409]
        assert (status_of(review), votes(review)) == (WAITING, ["approve"])


@pytest.mark.django_db(transaction=True)
def test_one_of_each_tier_at_once_meet_it() -> None:
    cast = Cast()
    clinic = Clinic(cast, buckets=ONE_EACH)
    rita, quinn = cast.session(cast.reviewer), cast.session(cast.person("quinn", QUALITY))
    for _ in range(12):
        review = clinic.hold()
        answers = at_once(
            lambda review=review: do(rita, review, "approve").status_code,
            lambda review=review: do(quinn, review, "approve").status_code,
        )
        assert answers == [200, 200]
        assert status_of(review) == APPROVED
