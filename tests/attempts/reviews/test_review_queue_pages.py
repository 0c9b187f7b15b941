"""The queue's pages: who sees what, in which order, a page at a time, and what a reader who has it already costs."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import database_now
from governance.ledger.services import person_commitment
from governance.people.models import ServiceAccount
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.pages import HX, answer, browser, many_cases, page, shown
from tests.attempts.reviews.support import REVIEWER, Clinic, ask, set_deadline
from tests.cast import Cast
from tests.tampering import triggers_off


def test_each_view_shows_what_its_name_says(cast: Cast, clinic: Clinic) -> None:
    rita, sam = browser(cast.reviewer), browser(cast.person("sam", REVIEWER))
    first, second, case = clinic.hold(), clinic.hold(), ask(cast)
    for row, seconds in ((first, 7200), (second, 600), (case, 9000)):
        set_deadline(row, seconds=seconds)
    assert shown(rita) == [str(row.id) for row in (second, first, case)]
    assert shown(rita, "view=expiring") == [str(second.id)]
    answer(rita, first, "claim")
    assert shown(rita, "view=mine") == [str(first.id)]
    assert shown(rita, "view=unclaimed") == [str(second.id), str(case.id)]
    assert shown(sam, "view=mine") == []
    answer(rita, second, "approve")
    assert shown(sam, "view=history") == [str(second.id)]
    assert shown(sam, "view=all") == [str(first.id), str(case.id)]


def test_what_one_signed_waits_on_others_and_is_not_asked_again(cast: Cast, two: Clinic) -> None:
    rita, sam = browser(cast.reviewer), browser(cast.person("sam", REVIEWER))
    review = two.hold()
    answer(rita, review, "approve")
    assert (shown(rita), shown(rita, "view=waiting")) == ([], [str(review.id)])
    assert (shown(sam), shown(sam, "view=waiting")) == ([str(review.id)], [])


def test_nobodys_groups_show_what_they_asked_for_themselves(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    boss = browser(clinic.responsible)
    assert (shown(boss), shown(boss, "view=all")) == ([], [str(review.id)])


def test_the_queue_hides_what_the_vote_would_refuse_also_after_another_name_was_put_there(
    cast: Cast, clinic: Clinic
) -> None:
    """Whoever answered for the service when it asked, and whoever did before: the vote refuses all of them."""
    review, boss, emil = clinic.hold(), clinic.responsible, cast.person("emil", REVIEWER)
    answer(browser(boss), review, "delegate", to_username="emil")
    with every_tenant():
        ServiceAccount.objects.filter(responsible=boss).update(responsible=cast.operator)
    for person in (boss, emil):
        assert (shown(browser(person)), shown(browser(person), "view=all")) == ([], [str(review.id)])
        refused = cast.session(person).post(
            f"/api/v1/reviews/{review.id}/approve", {"action_digest": review.action_digest}, format="json"
        )
        assert refused.status_code == 403, refused.json()
    assert shown(browser(cast.reviewer)) == [str(review.id)]


def test_the_queue_hides_what_was_barred_when_the_review_was_opened(cast: Cast) -> None:
    with every_tenant():
        ref = person_commitment(user_id=cast.reviewer.id)
    case = ask(cast, requester_refs=[ref])
    sam = cast.person("sam", REVIEWER)
    assert (shown(browser(cast.reviewer)), shown(browser(sam))) == ([], [str(case.id)])


def test_a_delegate_sees_for_whom_they_stand_in_but_not_what_that_person_asked_for(cast: Cast, clinic: Clinic) -> None:
    review, dora = clinic.hold(), browser(cast.person("dora", REVIEWER))
    assert "for rita" not in dora.get("/review/").content.decode()
    answer(browser(cast.reviewer), review, "delegate")
    assert shown(dora) == [str(review.id)]
    assert "<span>for rita</span>" in dora.get("/review/").content.decode()
    assert '<span class="badge">for rita</span>' in dora.get(f"/review/{review.id}").content.decode()
    emil = browser(cast.person("emil", REVIEWER))
    answer(browser(clinic.responsible), review, "delegate", to_username="emil")
    assert (shown(emil), shown(emil, "view=all")) == ([], [str(review.id)])


def test_where_several_tiers_sign_those_see_it_whose_signature_helps(cast: Cast) -> None:
    buckets = [{"tier": "customer_clinician", "approvals_required": 1}, {"tier": "sa_qa", "approvals_required": 1}]
    review = Clinic(cast, buckets=buckets).hold()
    rita, quinn = browser(cast.reviewer), browser(cast.person("quinn", "reviewer:sa_qa"))
    assert shown(rita) == shown(quinn) == [str(review.id)]
    answer(quinn, review, "approve")
    sam = browser(cast.person("sam", REVIEWER))
    assert (shown(browser(cast.person("quentin", "reviewer:sa_qa"))), shown(sam)) == ([], [str(review.id)])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("risk=high", ["high"]),
        ("risk=low", ["low"]),
        ("kind=human_review", ["case"]),
        ("contract=close-case", ["high", "low"]),
        ("tier=sa_qa", []),
        ("q=case-0042", ["case"]),
        ("q=nothing-such", []),
        ("view=nonsense", ["high", "low", "case"]),
    ],
)
def test_filters_stand_in_the_address(cast: Cast, clinic: Clinic, query: str, found: list[str]) -> None:
    rows = {"high": clinic.hold(action={"risk_tier": "high"}), "low": clinic.hold(), "case": ask(cast)}
    for number, row in enumerate(rows.values()):
        set_deadline(row, seconds=3000 + number)
    names = {str(row.id): name for name, row in rows.items()}
    assert [names[id_] for id_ in shown(browser(cast.reviewer), query)] == found


def test_an_id_finds_its_review_open_or_ended(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    assert shown(rita, f"q={review.id}") == shown(rita, f"q={review.attempt_id}") == [str(review.id)]
    number = uuid4()
    case = ask(cast, context_ref=f"case/{number}")
    assert shown(rita, f"q={number}") == shown(rita, f"q={case.origin_step}") == [str(case.id)]
    answer(rita, review, "approve")
    assert shown(rita, f"view=history&q={review.attempt_id}") == [str(review.id)]
    assert shown(rita, "view=history&q=case-0001") == [str(review.id)]


def test_pages_follow_each_other_without_gap_or_repetition(cast: Cast) -> None:
    rows = many_cases(cast, 119, step=0)
    with every_tenant():
        Review.objects.filter(id__in=[row.id for row in rows[100:]]).update(expires_at=None)
    rita = browser(cast.reviewer)
    query, seen = "", []
    for _ in range(3):
        found = rita.get(f"/review/?{query}")
        seen += [row.id for row in found.context["rows"]]
        query = found.context["next_query"]
    assert seen == sorted(row.id for row in rows[:100]) + sorted(row.id for row in rows[100:])
    assert query == ""


@pytest.mark.parametrize("organizations", [1, 2])
def test_history_is_the_newest_first_page_by_page(cast: Cast, organizations: int) -> None:
    rows, now, places = many_cases(cast, 70), database_now(), [cast.organization, cast.other][:organizations]
    with every_tenant(), triggers_off("attempts_review"):
        for number, row in enumerate(rows):
            row.decided_at = now - timedelta(minutes=number // 3)
            ended = {"status": "confirmed", "organization": places[number % organizations]}
            Review.objects.filter(id=row.id).update(decided_at=row.decided_at, **ended)
    for place in places:
        cast.person("rita", REVIEWER, organization=place)
    rita = browser(cast.reviewer)
    first = rita.get("/review/?view=history")
    second = rita.get(f"/review/?{first.context['next_query']}")
    seen = [row.id for found in (first, second) for row in found.context["rows"]]
    assert seen == [row.id for row in sorted(rows, key=lambda row: (row.decided_at, row.id), reverse=True)]


def test_a_broken_place_in_the_queue_is_a_refusal_with_words(cast: Cast, clinic: Clinic) -> None:
    found = browser(cast.reviewer).get("/review/?after=nonsense")
    assert found.status_code == 400
    assert "is no place in this queue" in found.content.decode()


def test_counts_stop_at_a_hundred(cast: Cast) -> None:
    many_cases(cast, 101)
    tabs = {tab["name"]: tab["count"] for tab in browser(cast.reviewer).get("/review/").context["tabs"]}
    assert (tabs["My groups"], tabs["Mine"], tabs["History"]) == ("100+", "0", "")


def test_a_page_costs_the_same_number_of_queries_however_many_wait(cast: Cast) -> None:
    rita = browser(cast.reviewer)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert rita.get("/review/").status_code == 200
        return len(found)

    many_cases(cast, 2)
    few = queries()
    many_cases(cast, 200)
    assert queries() == few < 25


def test_who_has_the_list_already_gets_it_again_only_when_it_changed(cast: Cast, clinic: Clinic) -> None:
    rita, review = browser(cast.reviewer), clinic.hold()
    first = rita.get("/review/live?view=groups", headers=HX)
    known = HX | {"If-None-Match": first["ETag"]}
    again = rita.get("/review/live?view=groups", headers=known)
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    answer(browser(cast.person("sam", REVIEWER)), review, "claim")
    changed = rita.get("/review/live?view=groups", headers=known)
    assert changed.status_code == 200
    assert "claimed by sam" in changed.content.decode()


def test_the_cards_live_part_changes_with_what_others_do(cast: Cast, two: Clinic) -> None:
    rita, review = browser(cast.reviewer), two.hold()
    first = rita.get(page(review, "live"), headers=HX)
    known = HX | {"If-None-Match": first["ETag"]}
    assert rita.get(page(review, "live"), headers=known).status_code == 304
    answer(browser(cast.person("sam", REVIEWER)), review, "approve")
    changed = rita.get(page(review, "live"), headers=known)
    assert changed.status_code == 200
    assert "1 of 2 signatures" in changed.content.decode()


def test_deadlines_are_in_the_readers_time_zone(cast: Cast, clinic: Clinic) -> None:
    review = clinic.hold()
    with every_tenant():
        deadline = database_now().replace(hour=12, minute=0) + timedelta(days=30)
        Review.objects.filter(id=review.id).update(expires_at=deadline)
    cast.reviewer.time_zone = "Asia/Kolkata"
    cast.reviewer.save(update_fields=["time_zone"])
    text = browser(cast.reviewer).get(page(review)).content.decode()
    assert "17:30</time>" in text
    assert "Asia/Kolkata" in text


def test_somebody_who_left_no_trace_yet_sees_an_empty_queue_with_words(cast: Cast) -> None:
    found: Any = browser(cast.person("new", REVIEWER)).get("/review/")
    assert "Nothing waits for you" in found.content.decode()
