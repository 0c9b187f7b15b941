"""The card and its answers: every door by owner, stranger and wrong role; reading decides nothing."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from attempts.reviews.models import Review
from governance.contracts.services.contracts import contract_suspend
from governance.sealing.models import ReadAccess
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.pages import HX, answer, browser, form, many_cases, page
from tests.attempts.reviews.support import (
    REVIEWER,
    Clinic,
    actions,
    ask,
    do,
    problem,
    set_deadline,
    status_of,
    violations,
    votes,
)
from tests.attempts.test_intake import URL, body, post
from tests.cast import Cast
from tests.governance.support import governed_counts
from tests.governed import open_contract
from tests.tampering import triggers_off

HELD_VERBS = ("approve", "reject", "claim", "delegate")
OTHER_URL = URL.replace("close-case", "open-case")
CASE_VERBS = ("confirm", "override", "decline", "claim", "delegate")


def signed_in_now(client: Client, user: Any) -> None:
    """As the sign-in form leaves it: a session that knows when the person proved who they are."""
    session = client.session
    session["account_authentication_methods"] = [{"method": "password", "at": timezone.now().timestamp()}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def test_the_card_tells_everything_a_decision_needs(cast: Cast, clinic: Clinic) -> None:
    earlier = clinic.hold()
    answer(browser(cast.reviewer), earlier, "reject")
    text = browser(cast.reviewer).get(page(clinic.hold())).content.decode()
    for words in (
        "Low risk",
        "case.close",
        "case-0001",
        "<code>status</code>",
        "Happens at most once",
        "The contract names no compensation, so treat the action as final.",
        "asking",
        "the person behind the service is boss",
        "Rule <code>hold</code> of policy version 1",
        "0 of 1 signature of customer clinician",
        "You are a reviewer of customer clinician.",
        "<strong>boss</strong> is behind the service account that asked",
        "customer clinician: rita",
        "rejected",
        "by rita (reviewer wrong target)",
        "Your answer counts after 5 s",
    ):
        assert words in text, words


@pytest.mark.parametrize("verb", HELD_VERBS)
def test_a_reviewer_answers_a_held_action(cast: Cast, clinic: Clinic, verb: str) -> None:
    cast.person("dora", REVIEWER)
    review = clinic.hold()
    found = answer(browser(cast.reviewer), review, verb)
    assert found.status_code == 302, found.content
    expected = {"approve": "review.approved", "reject": "review.rejected", "claim": "review.claimed"}
    assert expected.get(verb, "review.delegated") in actions(review)


@pytest.mark.parametrize("verb", CASE_VERBS)
def test_a_reviewer_answers_a_case(cast: Cast, verb: str) -> None:
    cast.person("dora", REVIEWER)
    review = ask(cast)
    found = answer(browser(cast.reviewer), review, verb, result_ref="finding-0007", payload_sha256="9b" * 32)
    assert found.status_code == 302, found.content
    assert votes(review) == ([verb] if verb in ("confirm", "override", "decline") else [])


def test_a_claim_is_given_back(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    answer(rita, review, "claim")
    assert answer(rita, review, "release").status_code == 302
    assert actions(review) == ["review.claimed", "review.released"]


@pytest.mark.parametrize("verb", HELD_VERBS)
def test_somebody_with_the_wrong_role_is_refused_and_it_is_on_record(cast: Cast, clinic: Clinic, verb: str) -> None:
    review = clinic.hold()
    assert answer(browser(cast.auditor), review, verb).status_code == 403
    assert (status_of(review)[0], votes(review)) == ("requested", [])
    assert violations() == ["unauthorized_decision"]


@pytest.mark.parametrize("path", ["", "live", "approve", "reject", "claim", "release", "delegate", "confirm"])
def test_a_stranger_finds_nothing(cast: Cast, clinic: Clinic, path: str) -> None:
    review = clinic.hold()
    oscar = browser(cast.person("otto", REVIEWER, organization=cast.other))
    found = answer(oscar, review, path) if path not in ("", "live") else oscar.get(page(review, path))
    assert found.status_code == 404
    assert status_of(review)[0] == "requested"
    assert review.action_digest not in found.content.decode()


@pytest.mark.parametrize("path", ["/review/", "/review/live", "/review/bulk?verdict=approve", "card", "live"])
def test_nobody_and_anonymous_are_sent_away(cast: Cast, clinic: Clinic, path: str) -> None:
    review = clinic.hold()
    path = {"card": page(review), "live": page(review, "live")}.get(path, path)
    assert browser(cast.nobody).get(path).status_code == 403
    away = Client().get(path)
    assert (away.status_code, away["Location"].split("?")[0]) == (302, "/accounts/login/")
    assert Client().get(path, headers=HX)["HX-Redirect"].startswith("/accounts/login/")
    assert Client().post(page(review, "approve"), form(review, "approve")).status_code == 302
    assert votes(review) == []


def test_looking_changes_nothing(cast: Cast, clinic: Clinic) -> None:
    rita, held, case = browser(cast.reviewer), clinic.hold(), ask(cast)
    before = governed_counts()
    for review in (held, case):
        for path in (page(review), page(review, "live"), f"/review/bulk?verdict=approve&id={review.id}"):
            assert rita.get(path).status_code == 200
        for verb in (*HELD_VERBS, *CASE_VERBS, "release"):
            assert rita.get(page(review, verb)).status_code == 405
    assert governed_counts() == before
    with every_tenant():
        assert ReadAccess.objects.filter(subject_id__in=[held.id, case.id]).count() == 2, "opened once each"


def test_a_decision_without_the_pages_token_is_refused(cast: Cast, clinic: Clinic) -> None:
    review, client = clinic.hold(), Client(enforce_csrf_checks=True)
    client.force_login(cast.reviewer)
    assert client.post(page(review, "approve"), form(review, "approve")).status_code == 403
    assert votes(review) == []


def test_what_changed_since_one_looked_is_not_decided(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    assert answer(rita, review, "approve", action_digest="0" * 64).status_code == 412
    card = answer(rita, review, "approve", hx=True, action_digest="0" * 64)
    text = card.content.decode()
    assert card.status_code == 200
    assert "The proposal changed" in text
    assert review.action_digest in text
    assert votes(review) == []


def test_the_next_item_follows_and_the_last_one_says_so(cast: Cast, clinic: Clinic) -> None:
    rita = browser(cast.reviewer)
    first, second, third = (clinic.hold() for _ in range(3))
    for number, row in enumerate((first, second, third)):
        set_deadline(row, seconds=1000 + number)
    found = answer(rita, second, "approve", hx=True)
    assert found["HX-Push-Url"].startswith(page(third))
    assert "Released: case-0001." in found.content.decode()
    assert answer(rita, third, "approve", hx=True)["HX-Push-Url"].startswith(page(first))
    last = answer(rita, first, "approve", hx=True)
    assert last["HX-Push-Url"].startswith("/review/?")
    assert "Nothing left here" in last.content.decode()


def test_who_comes_too_late_is_told_who_was_faster(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    answer(browser(cast.person("sam", REVIEWER)), review, "approve")
    text = answer(browser(cast.reviewer), review, "reject", hx=True).content.decode()
    assert "The review is over" in text
    assert "Approved by sam." in text
    assert 'class="sheet ended"' in text


def test_an_expired_item_shows_no_buttons(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    set_deadline(review, seconds=-1)
    text = browser(cast.reviewer).get(page(review), headers=HX).content.decode()
    assert "Expiry never approves." in text
    assert "Approve" not in text


def test_a_note_that_is_demanded_or_not_allowed_is_said_beside_the_card(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    text = answer(rita, review, "reject", hx=True, reason_code="reviewer_too_risky").content.decode()
    assert "requires a note" in text
    text = answer(rita, review, "reject", hx=True, reason_code="").content.decode()
    assert "<strong>reason_code</strong>: is required" in text
    assert answer(rita, review, "reject", note="x" * 281).status_code == 400
    assert votes(review) == []


def test_what_cannot_be_released_now_is_said_before_anybody_presses(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    actor = cast.actor(cast.operator, [cast.organization])
    with every_tenant():
        contract_suspend(
            actor=actor, at=timezone.now(), contract_id=clinic.contract.id, reason_code="planned_maintenance"
        )
    assert "Nothing can be released now: contract suspended." in rita.get(page(review)).content.decode()
    assert answer(rita, review, "approve").status_code == 409


def test_a_high_risk_action_needs_somebody_who_signed_in_a_moment_ago(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold(action={"risk_tier": "high"})
    away = answer(rita, review, "approve")
    assert away["Location"].startswith("/accounts/reauthenticate/?next=")
    asked = answer(rita, review, "reject", hx=True)
    assert (asked["HX-Reswap"], "HX-Redirect" in asked) == ("none", False)
    assert json.loads(asked["HX-Trigger"])["review-proof"]["kind"] == "password"
    assert votes(review) == []
    signed_in_now(rita, cast.reviewer)
    answer(rita, review, "approve")
    assert votes(review) == ["approve"]


def test_the_api_asks_a_session_for_the_same(cast: Cast, clinic: Clinic) -> None:
    rita, review = cast.session(cast.reviewer), clinic.hold(action={"risk_tier": "high"})
    assert problem(do(rita, review, "approve")) == (403, "step-up-needed")
    assert problem(do(cast.session(cast.auditor), review, "approve")) == (403, "not-a-reviewer")
    signed_in_now(rita, cast.reviewer)
    assert do(rita, review, "approve").status_code == 200


def test_somebody_who_may_not_decide_anyway_is_refused_rather_than_asked_who_they_are(
    cast: Cast, clinic: Clinic
) -> None:
    review = clinic.hold(action={"risk_tier": "high"})
    assert answer(browser(cast.auditor), review, "approve").status_code == 403


def test_an_unknown_answer_does_not_exist(cast: Cast, clinic: Clinic) -> None:
    assert answer(browser(cast.reviewer), clinic.hold(), "applaud").status_code == 404


def test_a_card_costs_the_same_however_much_was_decided_before(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert rita.get(page(review), headers=HX).status_code == 200
        return len(found)

    queries()  # what a process reads once
    few = queries()
    rows = many_cases(cast, 60)
    with every_tenant(), triggers_off("attempts_review"):
        Review.objects.filter(id__in=[row.id for row in rows]).update(status="confirmed", decided_at=timezone.now())
    assert queries() == few < 32


def bulk(client: Client, reviews: list[Review], verdict: str = "approve", **more: str) -> Any:
    items = [f"{review.id}:{review.action_digest}" for review in reviews]
    return client.post("/review/bulk", {"verdict": verdict, "item": items, **more})


def held_elsewhere(cast: Cast, clinic: Clinic) -> Review:
    """Under another contract."""
    open_contract(cast, slug="open-case")
    found = post(clinic.caller, body(patient_context_ref="ctx-9000"), key="key-90000001", url=OTHER_URL)
    with every_tenant():
        return Review.objects.get(id=found.json()["review"]["id"])


def test_many_are_answered_together_and_each_has_its_own_result(cast: Cast, clinic: Clinic) -> None:
    rita, reviews = browser(cast.reviewer), [clinic.hold() for _ in range(3)]
    answer(browser(cast.person("sam", REVIEWER)), reviews[1], "reject")
    found = bulk(rita, reviews)
    assert [result.refusal and result.refusal.code for result in found.context["results"]].count(None) == 2
    assert (found.context["done"], found.context["refused"]) == (2, 1)
    assert [status_of(review)[0] for review in reviews] == ["approved", "rejected", "approved"]


def test_a_rejection_of_many_has_one_reason(cast: Cast, clinic: Clinic) -> None:
    rita, reviews = browser(cast.reviewer), [clinic.hold() for _ in range(2)]
    assert bulk(rita, reviews, "reject").context["refused"] == 2
    assert bulk(rita, reviews, "reject", reason_code="reviewer_wrong_target").context["done"] == 2


@pytest.mark.parametrize("wide", ["risk", "contract", "case", "nothing"])
def test_a_set_that_is_too_wide_is_refused_as_a_whole(cast: Cast, clinic: Clinic, wide: str) -> None:
    first, second = clinic.hold(), clinic.hold()
    if wide == "risk":
        second = clinic.hold(action={"risk_tier": "medium"})
    if wide == "contract":
        second = held_elsewhere(cast, clinic)
    if wide == "case":
        second = ask(cast)
    chosen = [] if wide == "nothing" else [first, second]
    rita = browser(cast.reviewer)
    query = "&".join(f"id={review.id}" for review in chosen)
    assert rita.get(f"/review/bulk?verdict=approve&{query}").context["too_wide"]
    assert bulk(rita, chosen).status_code == 409
    assert votes(first) == votes(second) == []


def test_a_stranger_answers_nothing_in_bulk(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    otto = browser(cast.person("otto", REVIEWER, organization=cast.other))
    assert bulk(otto, [review]).status_code == 409
    assert bulk(browser(cast.auditor), [review]).context["refused"] == 1
    assert votes(review) == []


@pytest.mark.parametrize("query", ["", "verdict=confirm", "verdict=approve&id=x"])
def test_a_bulk_page_without_sense_is_a_refusal_with_words(cast: Cast, clinic: Clinic, query: str) -> None:
    assert browser(cast.reviewer).get(f"/review/bulk?{query}").status_code == 400
