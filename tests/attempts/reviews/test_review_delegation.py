"""Delegation on a review: only to somebody who has the tier, one vote each, no way round the separation of duties."""

from typing import Any

import pytest

from attempts.reviews.models import Review, ReviewVote
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    do,
    problem,
    set_deadline,
    status_of,
    url,
    violations,
    votes,
)
from tests.cast import Cast


@pytest.fixture
def dora(cast: Cast) -> Any:
    """A second reviewer of the tier, who stands in."""
    return cast.session(cast.person("dora", REVIEWER))


def test_who_stands_in_votes_in_their_own_name_and_the_record_names_the_delegation(
    cast: Cast, clinic: Clinic, rita: Any, dora: Any
) -> None:
    review = clinic.hold()
    answer = do(rita, review, "delegate")
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert {key: made[key] for key in ("tier", "from_username", "to_username", "state", "reason_code")} == {
        "tier": "customer_clinician",
        "from_username": "rita",
        "to_username": "dora",
        "state": "active",
        "reason_code": "reviewer_away",
    }
    may = dora.get(url(review)).json()["may_decide"]
    assert (may["allowed"], may["stands_in_for"]) == (True, ["rita"])
    voted = do(dora, review, "approve").json()["votes"][0]
    assert (voted["voter"], voted["on_behalf_of"], voted["stands_in_for"]) == ("dora", None, ["rita"])
    assert status_of(review)[0] == "approved"
    with every_tenant():
        assert ReviewVote.objects.get(review=review).on_behalf_of_ref == ""
        entry = LedgerEntry.objects.get(subject_id=made["id"], action="delegation.created")
        assert entry.payload["from"] == person_commitment(user_id=cast.reviewer.id)
        assert entry.reason_code == "reviewer_away"
        assert LedgerEntry.objects.get(action="review.voted").payload["stands_in_by"] == [made["id"]]
    assert "review.delegated" in actions(review)


@pytest.mark.parametrize("role", ["reviewer:sa_qa", "operator", "auditor", "owner:privacy"])
def test_nobody_without_the_tier_gets_a_vote_by_delegation(cast: Cast, clinic: Clinic, rita: Any, role: str) -> None:
    wrong = cast.session(cast.person("dora", role))
    review = clinic.hold()
    assert problem(do(rita, review, "delegate")) == (403, "delegate-without-tier")
    assert problem(do(wrong, review, "approve")) == (403, "not-a-reviewer")
    assert violations() == ["unauthorized_decision"] * 2
    assert votes(review) == []


@pytest.mark.parametrize("username", ["rita", "nobody-at-all", "oscar", "norman", "gone"])
def test_it_goes_to_somebody_else_of_the_organization_and_names_cannot_be_probed(
    cast: Cast, clinic: Clinic, rita: Any, username: str
) -> None:
    """Oneself, an unknown name, a stranger, somebody without a role, somebody switched off."""
    cast.person("oscar", REVIEWER, organization=cast.other)
    cast.person("norman")
    gone = cast.person("gone", REVIEWER)
    gone.is_active = False
    gone.save(update_fields=["is_active"])
    review = clinic.hold()
    refused = do(rita, review, "delegate", to_username=username)
    assert problem(refused) == (400, "invalid-input")
    assert username not in refused.content.decode()


@pytest.mark.parametrize(
    "changes", [{"hours": 0}, {"hours": 337}, {"hours": "x"}, {"hours": None}, {"more": 1}, {"reason_code": "no_such"}]
)
def test_it_lasts_from_one_hour_to_fourteen_days_for_a_known_reason(
    clinic: Clinic, rita: Any, dora: Any, changes: Any
) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "delegate", **changes)) == (400, "invalid-input")
    assert do(rita, review, "delegate", hours=336).status_code == 201


def test_a_delegation_is_for_the_tier_and_one_at_a_time(cast: Cast, clinic: Clinic, rita: Any, dora: Any) -> None:
    cast.person("emil", REVIEWER)
    first, second = clinic.hold(), clinic.hold()
    do(rita, first, "delegate")
    assert dora.get(url(second)).json()["may_decide"]["stands_in_for"] == ["rita"]
    assert problem(do(rita, second, "delegate", to_username="emil")) == (409, "delegation-exists")


def test_what_was_delegated_is_not_passed_on(cast: Cast, clinic: Clinic, rita: Any, dora: Any) -> None:
    """Dora's own delegation covers Dora, not Rita; and nobody sends work to somebody who is away."""
    emil = cast.session(cast.person("emil", REVIEWER))
    review = clinic.hold()
    do(rita, review, "delegate")
    assert do(dora, review, "delegate", to_username="emil").status_code == 201
    assert emil.get(url(review)).json()["may_decide"]["stands_in_for"] == ["dora"]
    assert problem(do(emil, review, "delegate", to_username="rita")) == (409, "delegate-away")


def test_another_tier_needs_that_tiers_role(clinic: Clinic, rita: Any, dora: Any) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "delegate", tier="sa_qa")) == (403, "not-a-reviewer")


def test_whoever_is_behind_the_request_cannot_send_a_delegate(cast: Cast, clinic: Clinic, dora: Any) -> None:
    review = clinic.hold()
    made = do(cast.session(clinic.responsible), review, "delegate").json()
    card = dora.get(url(review)).json()
    assert ("dora", "own_request") in [(row["username"], row["reason"]) for row in card["excluded"]]
    assert "dora" not in card["quorum"]["by_tier"][0]["may_sign"]
    for verb in ("approve", "reject", "claim"):
        assert problem(do(dora, review, verb)) == (403, "own-work")
    assert violations() == ["own_work_approved"] * 3
    # Once nobody stands in for the requester any more, Dora decides as herself.
    assert dora.post(f"/api/v1/delegations/{made['id']}/end", {}, format="json").status_code == 200
    assert do(dora, review, "approve").status_code == 200


def test_the_requester_who_stands_in_for_somebody_stays_excluded(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    assert do(rita, review, "delegate", to_username=clinic.responsible.username).status_code == 201
    assert problem(do(cast.session(clinic.responsible), review, "approve")) == (403, "own-work")


def test_two_people_are_needed_whoever_stands_in_for_whom(cast: Cast, two: Clinic, rita: Any, dora: Any) -> None:
    review = two.hold()
    do(rita, review, "delegate")
    assert do(dora, review, "approve").status_code == 200
    assert problem(do(dora, review, "approve")) == (409, "already-voted")
    assert (status_of(review)[0], votes(review)) == ("requested", ["approve"])
    assert violations() == ["second_person_missing"]
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review)[0] == "approved"


def test_claims_move_to_who_stands_in(cast: Cast, clinic: Clinic, rita: Any, dora: Any) -> None:
    first, second = clinic.hold(), clinic.hold()
    for review in (first, second):
        assert do(rita, review, "claim").status_code == 200
    with every_tenant():
        until = Review.objects.get(id=first.id).claimed_until
    do(rita, second, "delegate")
    with every_tenant():
        row = Review.objects.get(id=first.id)
        assert (row.claimed_by_id, row.claimed_until) == (cast.person("dora").id, until)
    assert "review.claim_moved" in actions(first)
    assert do(dora, first, "approve").status_code == 200


def test_a_claim_that_they_may_not_take_is_given_back(cast: Cast, clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    do(rita, review, "claim")
    do(rita, review, "delegate", to_username=clinic.responsible.username)
    with every_tenant():
        assert Review.objects.get(id=review.id).claimed_by is None
    assert actions(review)[-2:] == ["review.released", "review.delegated"]


def test_a_review_that_has_ended_delegates_nothing(clinic: Clinic, rita: Any, dora: Any) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-1)
    assert problem(do(rita, review, "delegate")) == (409, "wrong-state")
