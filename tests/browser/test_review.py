"""The review pages as reviewers use them. What no page may ever do is checked by the guard of every page."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bench.record import record
from tests.browser.reviewing import (
    NOTE_CODE,
    age_sign_in,
    approve,
    behind,
    card_of,
    case_for_judgement,
    deadline_in,
    hold,
    row_of,
    search,
    state_of,
    target,
)
from tests.browser.site import PHONE, People, Site

pytestmark = [pytest.mark.browser, pytest.mark.stack]


def test_a_reviewer_approves_and_the_next_item_opens_by_itself(site: Site, people: People) -> None:
    about = target()
    first, second = hold(site, about=f"{about}-1"), hold(site, about=f"{about}-2")
    page = people.page("reviewer")
    page.goto(f"/review/?q={about}")
    row_of(page, first["target"]).get_by_role("link").click()
    expect(page.locator("#card .target")).to_contain_text(first["target"])
    approve(page)
    expect(page.locator(".notice")).to_have_text(f"Released: {first['target']}.")
    expect(page.locator("#card .target")).to_contain_text(second["target"])
    expect(page).to_have_url(re.compile(second["review_id"]))
    expect(page.locator("#card h1")).to_be_focused()
    expect(row_of(page, first["target"])).to_have_count(0)
    assert state_of(site, first) == "approved-for-execution"
    assert state_of(site, second) == "review-required"


def test_a_rejection_names_a_reason_and_a_note_where_the_reason_demands_one(site: Site, people: People) -> None:
    held = hold(site, risk="medium")
    page = people.page("reviewer")
    card = card_of(page, held)
    card.locator("summary", has_text="Reject").click()
    card.get_by_label("Reason", exact=True).select_option(NOTE_CODE)
    card.get_by_role("button", name="Reject it").click()
    assert card.locator("#reject-note").evaluate("note => note.validity.valueMissing")
    card.locator("#reject-note").fill("Dose looks wrong")
    card.get_by_role("button", name="Reject it").click()
    expect(page.locator(".notice")).to_have_text(f"Rejected: {held['target']}.")
    assert state_of(site, held) == "preflight-denied"
    ended = card_of(page, held, view="history")
    expect(ended.locator(".outcome")).to_contain_text("Rejected by reviewer.")
    expect(ended.locator(".votes")).to_contain_text("Dose looks wrong")


def test_two_people_must_sign_and_the_first_sees_it_wait_for_others(site: Site, people: People) -> None:
    held = hold(site, contract="two_person")
    first, second = people.page("reviewer"), people.page("reviewer2")
    expect(card_of(first, held).locator(".quorum")).to_contain_text("0 of 2 signatures of approvers")
    approve(first)
    expect(first.locator(".notice")).to_contain_text("It waits for others to sign.")
    search(first, held["target"], view="waiting")
    expect(card_of(second, held).locator(".quorum")).to_contain_text("1 of 2")
    expect(second.locator("#card")).to_contain_text("reviewer has voted on this review")
    approve(second)
    expect(second.locator(".notice")).to_have_text(f"Released: {held['target']}.")
    assert state_of(site, held) == "approved-for-execution"


def test_nobody_approves_what_their_own_service_asked_for(site: Site, people: People) -> None:
    page = people.page("reviewer")
    with behind(site, "reviewer", "admin"):
        held = hold(site, key="admin")
        card = card_of(page, held, view="all")
        expect(card).to_contain_text("You cannot decide on this. You are behind this request")
        expect(card.get_by_role("button", name="Approve")).to_have_count(0)
        answer = post(page, f"/review/{held['review_id']}/approve", action_digest=held["action_digest"])
        assert answer.status == 403
        assert "behind this request" in answer.text()
    assert state_of(site, held) == "review-required"


def post(page: Page, path: str, **data: str) -> Any:
    """A form posted past the page's own buttons, with the page's token."""
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    return page.request.post(path, form=data | {"csrfmiddlewaretoken": token}, headers={"Referer": page.url})


def test_an_item_that_expires_while_it_is_open_greys_out_by_itself(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer")
    card = card_of(page, held)
    expect(card.get_by_role("timer")).to_have_attribute("aria-label", re.compile("Time left: 23 h .* until .*"))
    deadline_in(site, held, 2)
    expect(card.locator(".outcome")).to_contain_text("Expiry never approves", timeout=15_000)
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.locator("#announce")).to_contain_text("Expiry never approves")


def test_what_somebody_else_decides_greys_out_live_and_says_who_it_was(site: Site, people: People) -> None:
    held = hold(site)
    watching, deciding = people.page("reviewer"), people.page("reviewer2")
    card = card_of(watching, held)
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    card_of(deciding, held)
    approve(deciding)
    expect(card.locator(".outcome")).to_contain_text("Approved by reviewer2.", timeout=15_000)
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(card.locator("article")).to_have_class(re.compile("ended"))


def test_many_low_risk_items_of_one_contract_get_one_answer_after_a_preview(site: Site, people: People) -> None:
    about = target()
    held = [hold(site, about=f"{about}-{number}") for number in range(3)]
    risky = hold(site, risk="high", about=f"{about}-9")
    page = people.page("reviewer")
    page.goto(f"/review/?q={about}")
    expect(row_of(page, risky["target"]).get_by_role("checkbox")).to_be_disabled()
    for one in held:
        row_of(page, one["target"]).get_by_role("checkbox").check()
    expect(page.locator("#bulk-count")).to_have_text("3 chosen")
    page.get_by_role("button", name="Approve…").click()
    expect(page.locator("h1")).to_have_text("Approve 3 items")
    expect(page.locator("tbody tr", has_text="Is released.")).to_have_count(3)
    assert [state_of(site, one) for one in held] == ["review-required"] * 3
    page.get_by_role("button", name="Approve all").click()
    expect(page.locator("h1")).to_have_text("3 answered")
    assert [state_of(site, one) for one in held] == ["approved-for-execution"] * 3


def test_a_decision_needs_nothing_but_the_keyboard(site: Site, people: People) -> None:
    about = target()
    first, second = hold(site, about=f"{about}-1"), hold(site, risk="medium", about=f"{about}-2")
    page = people.page("reviewer")
    page.goto("/review/")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(about)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**q={about}**")
    page.keyboard.press("j")
    expect(page.locator("#card .target")).to_contain_text(first["target"])
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#card .target")).to_contain_text(second["target"])
    page.keyboard.press("r")
    expect(page.locator("#reject-reason")).to_be_focused()
    page.keyboard.type("Wrong")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_have_text(f"Rejected: {second['target']}.")
    assert [state_of(site, one) for one in (first, second)] == ["approved-for-execution", "preflight-denied"]


def test_single_keys_can_be_turned_off_and_stay_off(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer")
    page.goto(f"/review/?q={held['target']}")
    page.keyboard.press("?")
    page.get_by_label("Single keys work on this device").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("j")
    expect(page.locator("#card h2")).to_have_text("Nothing chosen")
    expect(page.locator("#help")).to_be_hidden()


def test_an_item_is_claimed_given_back_and_delegated_on_its_card(site: Site, people: People) -> None:
    held = hold(site)
    page, other = people.page("reviewer"), people.page("reviewer2")
    card = card_of(page, held)
    card.get_by_role("button", name="Claim for 15 minutes").click()
    expect(card.locator(".claim")).to_contain_text("You have claimed it until")
    search(page, held["target"], view="mine")
    expect(card_of(other, held)).to_contain_text("Somebody else has claimed this review")
    card = card_of(page, held)
    card.get_by_role("button", name="Give it back").click()
    expect(card.locator(".notice")).to_have_text("Given back to the queue.")
    card.get_by_role("link", name="Delegate").click()
    page.get_by_label("Tier and person").select_option(label=site.demo["users"]["reviewer2"]["username"])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    page.get_by_label("Until").fill(f"{tomorrow:%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Delegate", exact=True).click()
    expect(page.get_by_text("stands in for you").first).to_be_visible()
    expect(card_of(other, held)).to_contain_text("You stand in for")
    page.get_by_role("button", name="End the delegation to").click()
    expect(page.get_by_text("Nobody stands in for you, and you stand in for nobody.")).to_be_visible()


def test_a_high_risk_decision_asks_again_who_it_is(site: Site, people: People) -> None:
    held = hold(site, risk="high")
    page = people.page("reviewer2")
    age_sign_in(site, "reviewer2")
    expect(card_of(page, held)).to_contain_text("you have to confirm that it is you")
    approve(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert state_of(site, held) == "review-required"
    page.get_by_label("Password").fill(site.demo["users"]["reviewer2"]["password"])
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator(".notice")).to_contain_text(f"Released: {held['target']}.")
    assert state_of(site, held) == "approved-for-execution"


def test_a_case_of_a_workflow_shows_its_run_and_is_confirmed(site: Site, people: People) -> None:
    case = case_for_judgement(site)
    page = people.page("reviewer")
    page.goto(f"/review/?kind=human_review&q={case}")
    row_of(page, case).get_by_role("link").click(timeout=30_000)  # the queue renews itself when the step is there
    expect(page.locator("#card")).to_contain_text(case)
    expect(page.locator("#card svg.wf-graph")).to_be_visible()
    expect(page.locator("#card .steps")).to_contain_text("asks you")
    page.get_by_role("button", name="Confirm").click()
    expect(page.locator(".notice")).to_contain_text("Confirmed")


def test_the_pages_work_without_scripts(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer", java_script_enabled=False)
    card = card_of(page, held)
    card.get_by_role("button", name="Approve").click()
    expect(page.locator(".notices")).to_contain_text(f"Released: {held['target']}.")
    assert state_of(site, held) == "approved-for-execution"


def test_the_queue_fits_a_phone(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer", viewport=PHONE, has_touch=True, is_mobile=True)
    page.goto(f"/review/?q={held['target']}")
    row_of(page, held["target"]).get_by_role("link").tap()
    expect(page.locator("#card .target")).to_contain_text(held["target"])
    expect(page.locator(".queue")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="Approve").tap()
    expect(page.locator(".notice")).to_contain_text("Released")


def decide_all(page: Page, count: int, *, pause: float) -> None:
    """As a person at the keyboard: looks, thinks, presses. Every fifth is rejected."""
    page.keyboard.press("j")
    for number in range(count):
        heading = page.locator("#card .target strong")
        shown = heading.inner_text()
        page.wait_for_timeout(pause * 1000)
        if number % 5 == 4:
            page.keyboard.press("r")
            page.keyboard.type("Wrong")
            page.keyboard.press("Tab")
            page.keyboard.press("Tab")
        else:
            page.keyboard.press("a")
        page.wait_for_timeout(100)
        page.keyboard.press("Enter")
        expect(page.locator("#card .notice")).to_contain_text(shown)


def batch_decided(site: Site, page: Page, count: int, *, pause: float) -> float:
    """Seconds that it took. Afterwards their caller withdraws them: a contract has only so many under way."""
    about, kinds = target(), [("hold", "low"), ("hold", "medium"), ("two_person", "low")]
    held = [hold(site, contract=kinds[n % 3][0], risk=kinds[n % 3][1], about=f"{about}-{n:03}") for n in range(count)]
    page.goto(f"/review/?q={about}")
    began = page.evaluate("performance.now()")
    decide_all(page, count, pause=pause)
    seconds = (page.evaluate("performance.now()") - began) / 1000
    expect(page.locator("#card h1")).to_have_text("Nothing left here")
    rejected, waiting = "preflight-denied", "review-required"
    usual = ["approved-for-execution", "approved-for-execution", waiting]
    assert [state_of(site, one) for one in held] == [rejected if n % 5 == 4 else usual[n % 3] for n in range(count)]
    for one in held:
        site.call("POST", f"/attempts/{one['id']}/cancel", "caller")
    return float(seconds)


@pytest.mark.parametrize(
    ("count", "pause"),
    [(5, 0.2), pytest.param(100, 1.2, marks=[pytest.mark.soak, pytest.mark.timeout(600)])],
)
def test_mixed_items_are_decided_one_after_the_other_by_keyboard(
    site: Site, people: People, count: int, pause: float
) -> None:
    page, batch = people.page("reviewer"), min(count, 25)
    seconds = sum(batch_decided(site, page, batch, pause=pause) for _ in range(count // batch))
    if count == 100:
        record(name="soak keyboard", figures={"items": count, "pause_s": pause, "seconds": round(seconds, 1)})
    assert seconds < 300
