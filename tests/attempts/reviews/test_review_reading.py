"""The queue and the card: who sees them, and what they say."""

from typing import Any

import pytest

from governance.people.models import ServiceAccount
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import REVIEWER, Clinic, do, problem, set_deadline, url
from tests.cast import Cast

QUEUE = "/api/v1/reviews"


def test_the_card_says_what_is_asked_by_whom_why_and_until_when(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    answer = rita.get(url(review))
    assert answer.status_code == 200, answer.content
    card = answer.json()
    assert card["asked"] == {
        "connector": "external",
        "operation": "case.close",
        "target_ref": "case-0001",
        "fields": ["status"],
        "effect": "once",
        "risk_tier": "low",
        "payload_ref": "payload-0001",
        "payload_sha256": "ab" * 32,
        "reversibility": "The contract names no compensation, so treat the action as final.",
        "facts": [],
    }
    assert card["asked_by"]["service_account"] == "asking"
    assert (card["why_held"]["rule_id"], card["why_held"]["policy_version"]) == ("hold", 1)
    assert "customer_clinician" in card["why_held"]["explanation"]
    assert card["action_digest"] == review.action_digest
    assert card["quorum"]["by_tier"] == [
        {
            "tier": "customer_clinician",
            "approvals_required": 1,
            "approvals": 0,
            "missing": 1,
            "may_sign": ["rita"],
        }
    ]
    assert card["excluded"] == [
        {
            "username": "boss",
            "reason": "own_request",
            "detail": "is behind the service account that asked, or stands in for the person who is",
        }
    ]
    assert card["may_decide"] == {
        "allowed": True,
        "verdicts": ["approve", "reject"],
        "reason": None,
        "detail": "Your vote counts.",
        "on_behalf_of": None,
        "stands_in_for": [],
    }
    assert (card["claim"], card["votes"], card["release_blocked"], card["overdue"]) == (None, [], None, False)


def test_nobody_outside_the_organization_is_named(cast: Cast, clinic: Clinic, rita: Any) -> None:
    elsewhere = cast.person("elsewhere", "operator", organization=cast.other)
    with every_tenant():  # they had a role here when the account was made
        ServiceAccount.objects.filter(id=clinic.service.id).update(responsible=elsewhere)
    card = rita.get(url(clinic.hold())).json()
    # Who was responsible before still counts, and is named: they are of the organization.
    assert [row["username"] for row in card["excluded"]] == [None, "boss"]
    assert "elsewhere" not in str(card)


def test_earlier_signers_are_excluded_by_name(two: Clinic, rita: Any, sam: Any) -> None:
    review = two.hold()
    do(rita, review, "approve")
    card = sam.get(url(review)).json()
    assert {(row["username"], row["reason"]) for row in card["excluded"]} == {
        ("boss", "own_request"),
        ("rita", "already_voted"),
    }
    assert card["may_decide"]["allowed"] is True
    assert rita.get(url(review)).json()["may_decide"]["reason"] == "already_voted"


@pytest.mark.parametrize(
    ("role", "reason"), [("auditor", "not_a_reviewer"), ("operator", "not_a_reviewer"), (REVIEWER, None)]
)
def test_everybody_of_the_organization_may_look_and_is_told_whether_they_may_decide(
    cast: Cast, clinic: Clinic, role: str, reason: str | None
) -> None:
    review = clinic.hold()
    client = cast.session(cast.person("looker", role))
    assert [row["id"] for row in client.get(QUEUE).json()["results"]] == [str(review.id)]
    may = client.get(url(review)).json()["may_decide"]
    assert (may["allowed"], may["reason"]) == (reason is None, reason)


def test_a_key_with_the_scope_may_read_and_is_told_that_people_decide(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    api = cast.api("reviews:decide")
    assert [row["id"] for row in api.get(QUEUE).json()["results"]] == [str(review.id)]
    assert api.get(QUEUE + "?assigned=me").json()["results"] == []
    assert api.get(url(review)).json()["may_decide"]["reason"] == "not_a_person"
    assert problem(cast.api("attempts:create").get(QUEUE)) == (403, "scope-missing")


def test_strangers_and_people_without_a_role_see_nothing(cast: Cast, clinic: Clinic, client: Any) -> None:
    review = clinic.hold()
    stranger = cast.session(cast.other_operator)
    assert stranger.get(QUEUE).json()["results"] == []
    assert problem(stranger.get(url(review))) == (404, "not-found")
    assert problem(cast.session(cast.nobody).get(QUEUE)) == (403, "scope-missing")
    assert problem(client.get(QUEUE)) == (401, "credential-missing")


def test_the_queue_is_filtered_and_a_wrong_filter_is_refused(clinic: Clinic, rita: Any) -> None:
    first, second = clinic.hold(), clinic.hold()
    do(rita, first, "approve")

    def ids(query: str) -> list[str]:
        return [row["id"] for row in rita.get(f"{QUEUE}?{query}").json()["results"]]

    assert ids("") == [str(second.id), str(first.id)]
    assert ids("status=requested") == [str(second.id)]
    assert ids("status=approved&tier=customer_clinician") == [str(first.id)]
    assert ids("tier=sa_qa") == []
    for query in ("status=open", "assigned=you", "state=requested", "tier=a&tier=b"):
        assert rita.get(f"{QUEUE}?{query}").status_code == 400


def test_an_overdue_review_says_so_before_any_tick(clinic: Clinic, rita: Any) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-1)
    card = rita.get(url(review)).json()
    assert (card["status"], card["overdue"], card["may_decide"]["reason"]) == ("requested", True, "review_expired")
    assert rita.get(QUEUE).json()["results"][0]["overdue"] is True


def test_the_queue_costs_the_same_however_long_it_is(
    clinic: Clinic, rita: Any, django_assert_max_num_queries: Any
) -> None:
    for _ in range(6):
        do(rita, clinic.hold(), "claim")
    with django_assert_max_num_queries(8):
        assert len(rita.get(QUEUE).json()["results"]) == 6


def test_a_vote_of_somebody_who_was_erased_stays_and_counts_no_more(
    cast: Cast, two: Clinic, rita: Any, sam: Any
) -> None:
    review = two.hold()
    do(rita, review, "approve")
    with every_tenant():
        cast.reviewer.reference.delete()
    card = sam.get(url(review)).json()
    assert (card["votes"][0]["voter"], card["quorum"]["approvals"]) == ("erased", 0)
