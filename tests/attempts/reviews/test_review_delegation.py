"""Delegation: time-boxed, within the organization, one voice in all."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from attempts.reviews.models import Delegation, Review, ReviewVote
from attempts.reviews.selectors.reviews import database_now
from governance.ledger.models import LedgerEntry
from governance.ledger.services import person_commitment
from governance.people.models import User
from governance.people.services.people import person_role_take
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, Clinic, do, problem, status_of, url, violations, votes
from tests.cast import Cast


@pytest.fixture
def dora(cast: Cast) -> Any:
    """An operator, who is no reviewer."""
    return cast.session(cast.person("dora", "operator"))


def take(cast: Cast, user: User, role: str) -> None:
    with every_tenant():
        person_role_take(actor=SYSTEM, at=timezone.now(), user=user, organization=cast.organization, role=role)


def test_a_delegate_decides_in_the_others_place_and_both_are_on_record(
    cast: Cast, clinic: Clinic, rita: Any, dora: Any
) -> None:
    review = clinic.hold()
    assert problem(do(dora, review, "approve")) == (403, "not-a-reviewer")
    answer = do(rita, review, "delegate")
    assert answer.status_code == 201, answer.content
    assert {key: answer.json()[key] for key in ("tier", "from_username", "to_username")} == {
        "tier": "customer_clinician",
        "from_username": "rita",
        "to_username": "dora",
    }
    assert dora.get(url(review)).json()["may_decide"]["on_behalf_of"] == "rita"
    voted = do(dora, review, "approve")
    assert (voted.json()["votes"][0]["voter"], voted.json()["votes"][0]["on_behalf_of"]) == ("dora", "rita")
    assert status_of(review)[0] == "approved"
    with every_tenant():
        vote = ReviewVote.objects.get(review=review)
        assert vote.on_behalf_of_ref == person_commitment(user_id=cast.reviewer.id)
        assert LedgerEntry.objects.filter(subject_id=review.id, action="review.delegated").count() == 1


def test_a_delegation_is_for_the_tier_not_for_one_review(clinic: Clinic, rita: Any, dora: Any) -> None:
    first, second = clinic.hold(), clinic.hold()
    do(rita, first, "delegate")
    assert do(dora, second, "approve").status_code == 200


def test_it_ends_by_itself(clinic: Clinic, rita: Any, dora: Any) -> None:
    review = clinic.hold()
    do(rita, review, "delegate")
    with every_tenant():
        now = database_now()
        Delegation.objects.update(starts_at=now - timedelta(hours=2), ends_at=now - timedelta(seconds=1))
    assert problem(do(dora, review, "approve")) == (403, "not-a-reviewer")


@pytest.mark.parametrize("changes", [{"hours": 0}, {"hours": 337}, {"hours": "x"}, {"hours": None}, {"more": 1}])
def test_it_lasts_from_one_hour_to_fourteen_days(clinic: Clinic, rita: Any, dora: Any, changes: Any) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "delegate", **changes)) == (400, "invalid-input")
    assert do(rita, review, "delegate", hours=336).status_code == 201


@pytest.mark.parametrize("username", ["rita", "nobody-at-all", "oscar", "audrey", "norman", "gone"])
def test_it_goes_to_somebody_else_who_may_act_in_the_organization(
    cast: Cast, clinic: Clinic, rita: Any, username: str
) -> None:
    """Oneself, an unknown name, a stranger, an auditor, somebody without a role, somebody switched off."""
    cast.person("oscar", "operator", organization=cast.other)
    cast.person("audrey", "auditor")
    cast.person("norman")
    gone = cast.person("gone", "operator")
    gone.is_active = False
    gone.save(update_fields=["is_active"])
    review = clinic.hold()
    refused = do(rita, review, "delegate", to_username=username)
    assert problem(refused) == (400, "invalid-input")
    assert username not in refused.content.decode()


def test_what_was_delegated_cannot_be_handed_on(cast: Cast, clinic: Clinic, rita: Any, dora: Any) -> None:
    cast.person("emil", "operator")
    review = clinic.hold()
    do(rita, review, "delegate")
    assert problem(do(dora, review, "delegate", to_username="emil")) == (403, "not-a-reviewer")


def test_another_tier_needs_that_tiers_role(clinic: Clinic, rita: Any, dora: Any) -> None:
    review = clinic.hold()
    assert problem(do(rita, review, "delegate", tier="sa_qa")) == (403, "not-a-reviewer")


def test_whoever_is_behind_the_request_cannot_send_a_delegate(cast: Cast, clinic: Clinic, dora: Any) -> None:
    review = clinic.hold()
    assert do(cast.session(clinic.responsible), review, "delegate").status_code == 201
    assert problem(do(dora, review, "approve")) == (403, "own-work")
    assert violations() == ["own_work_approved"]


def test_one_person_cannot_meet_two_with_the_help_of_a_delegate(two: Clinic, rita: Any, dora: Any) -> None:
    first, second = two.hold(), two.hold()
    do(rita, first, "delegate")
    assert do(rita, first, "approve").status_code == 200
    assert problem(do(dora, first, "approve")) == (409, "already-voted")
    assert do(dora, second, "approve").status_code == 200
    assert problem(do(rita, second, "approve")) == (409, "already-voted")
    assert (votes(first), votes(second)) == (["approve"], ["approve"])
    assert violations() == ["second_person_missing"] * 2


def test_a_delegate_with_the_role_speaks_for_themselves(cast: Cast, two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "delegate", to_username="sam")
    assert do(sam, review, "approve").json()["votes"][0]["on_behalf_of"] is None
    assert do(rita, review, "approve").status_code == 200
    assert status_of(review)[0] == "approved"


@pytest.mark.parametrize("who", ["delegator", "delegate", "switched_off"])
def test_it_holds_only_while_both_have_their_place(cast: Cast, clinic: Clinic, rita: Any, dora: Any, who: str) -> None:
    cast.person("dora", "auditor")
    review = clinic.hold()
    do(rita, review, "delegate")
    if who == "delegator":
        take(cast, cast.reviewer, REVIEWER)
    elif who == "delegate":
        take(cast, User.objects.get(username="dora"), "operator")
    else:
        User.objects.filter(username="rita").update(is_active=False)
    assert problem(do(dora, review, "approve")) == (403, "not-a-reviewer")
    with every_tenant():
        assert Review.objects.get(id=review.id).status == "requested"
