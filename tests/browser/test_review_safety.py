"""No key and no press reaches an item that is not fully on the screen; and what is not recorded says so."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from bench.record import record
from tests.browser.reviewing import approve, card_of, hold, row_of, state_of, target
from tests.browser.site import People, Site

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# Each vote that leaves the page, with what was on the screen at the moment of the press.
WATCH = """
window.votes = [];
const shown = () => document.querySelector("#card [data-review]")?.dataset.review || "";
const closed = () => document.getElementById("card").inert;
let press = {shown: "", closed: true};
for (const kind of ["keydown", "click"]) {
  window.addEventListener(kind, () => (press = {shown: shown(), closed: closed()}), true);
}
const open = XMLHttpRequest.prototype.open;
XMLHttpRequest.prototype.open = function (method, url, ...more) {
  if (method.toUpperCase() === "POST") window.votes.push({url: String(url), ...press});
  return open.call(this, method, url, ...more);
};
"""


@contextmanager
def slow(page: Page, seconds: float) -> Iterator[list[str]]:
    """Cards arrive late, and votes never arrive. The list of the votes that were stopped."""
    stopped: list[str] = []

    def card(route: Route) -> None:
        page.wait_for_timeout(seconds * 1000)
        route.fallback()

    def vote(route: Route) -> None:
        if route.request.method != "POST":
            return route.fallback()
        stopped.append(route.request.url)
        return route.abort()

    page.route(re.compile(r"/review/[0-9a-f-]{36}/(approve|reject)$"), vote)
    page.route(re.compile(r"/review/[0-9a-f-]{36}\?"), card)
    try:
        yield stopped
    finally:
        page.unroute_all(behavior="ignoreErrors")


def three(site: Site) -> tuple[str, list[Any]]:
    about = target()
    return about, [hold(site, about=f"{about}-{number}") for number in range(3)]


def test_a_key_pressed_while_the_next_item_loads_is_dropped_and_said_so(site: Site, people: People) -> None:
    about, held = three(site)
    page = people.page("reviewer")
    page.goto(f"/review/{held[0]['review_id']}?q={about}")
    with slow(page, 1.5) as votes:
        page.keyboard.press("j")
        page.keyboard.press("a")
        expect(page.locator("#told")).to_have_text("The next item is still loading. Nothing was done.")
        page.keyboard.press("Enter")
        expect(page.locator("#banner")).to_contain_text(
            f"Loading {held[1]['operation']}" if "operation" in held[1] else "Loading"
        )
        assert page.locator("#card").evaluate("card => card.inert")
        expect(page.locator("#card .target")).to_contain_text(held[1]["target"])
        assert not page.locator("#card").evaluate("card => card.inert")
        expect(page.locator("#banner")).to_be_hidden()
        assert votes == []
    assert [state_of(site, one) for one in held] == ["review-required"] * 3


def test_only_the_item_chosen_last_is_shown_whatever_arrives_last(site: Site, people: People) -> None:
    about, held = three(site)
    page = people.page("reviewer")
    page.goto(f"/review/{held[0]['review_id']}?q={about}")
    with slow(page, 0.4):
        row_of(page, held[1]["target"]).get_by_role("link").click()
        row_of(page, held[2]["target"]).get_by_role("link").click()
        expect(page.locator("#card .target")).to_contain_text(held[2]["target"])
        page.wait_for_timeout(900)
        expect(page.locator("#card .target")).to_contain_text(held[2]["target"])


KEYS = (("j",), ("k",), ("a",), ("Enter",), ("a", "Enter"), ("j", "a", "Enter"), ("r",), ("Escape",), ("x",), ("u",))


def outdated(route: Route) -> None:
    """A vote for another digest: the server refuses it and shows the card again, so that the items stay."""
    body = route.request.post_data or ""
    if route.request.method != "POST":
        return route.fallback()
    return route.continue_(post_data=re.sub(r"action_digest=[0-9a-f]", "action_digest=x", body))


def random_keys(page: Page, *, sequences: int, seed: int, latency: float) -> int:
    """Presses keys at random; the number of votes. None is for an item that was not on the screen."""
    chance = random.Random(seed)
    for _ in range(sequences):
        for keys in chance.choices(KEYS, k=chance.randint(1, 3)):
            for key in keys:
                page.keyboard.press(key)
        if chance.random() < 0.2:
            page.wait_for_timeout(chance.choice([5, 30, 120]))
        if chance.random() < 0.1:  # or no card would ever arrive
            page.wait_for_timeout(1200 * latency + 50)
    assert "/review/" in page.url
    votes = page.evaluate("window.votes")
    wrong = [one for one in votes if one["closed"] or one["shown"] not in one["url"]]
    assert not wrong, (seed, wrong)
    return len(votes)


@pytest.mark.parametrize(
    ("latency", "sequences"),
    [
        (0.2, 60),
        *[pytest.param(late, 1700, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]) for late in (0.2, 1.5, 5.0)],
    ],
)
def test_random_keys_never_vote_for_an_item_that_is_not_on_the_screen(
    site: Site, people: People, latency: float, sequences: int
) -> None:
    about, held = three(site)
    page = people.page("reviewer")
    page.add_init_script(WATCH)
    page.goto(f"/review/{held[0]['review_id']}?q={about}")
    with slow(page, latency):
        page.route(re.compile(r"/approve$"), outdated)
        votes = random_keys(page, sequences=sequences, seed=random.randrange(10**6), latency=latency)
    assert votes > 0
    if sequences > 1000:
        record(name="soak random keys", figures={"latency_s": latency, "sequences": sequences, "votes": votes})
    assert [state_of(site, one) for one in held] == ["review-required"] * 3


def test_a_lost_connection_is_said_since_when_and_nothing_can_be_answered(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer")
    people.allow("ERR_INTERNET_DISCONNECTED", "Failed to load resource")
    card_of(page, held)
    page.context.set_offline(True)
    expect(page.locator("#banner")).to_contain_text(re.compile(r"No connection to Holdpoint since .*\d"))
    assert page.locator("#card").evaluate("card => card.inert")
    page.keyboard.press("a")
    expect(page.locator("#told")).to_have_text("There is no connection. Nothing was done.")
    page.context.set_offline(False)
    expect(page.locator("#banner")).to_be_hidden(timeout=15_000)
    approve(page)
    expect(page.locator(".notice")).to_have_text(f"Released: {held['target']}.")


def test_a_session_that_is_over_is_said_and_leads_to_sign_in(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer")
    card_of(page, held)
    page.context.clear_cookies(name="sessionid")
    expect(page.locator("#banner")).to_contain_text("Your session is over", timeout=15_000)
    assert page.locator("#card").evaluate("card => card.inert")
    page.get_by_role("button", name="Sign in again").click()
    page.wait_for_url("**/login/**")


def test_a_reply_that_never_came_is_not_called_a_decision(site: Site, people: People) -> None:
    held = hold(site)
    page = people.page("reviewer")
    people.allow("ERR_FAILED", "Failed to load resource", "htmx:afterRequest", "htmx:sendError")
    card_of(page, held)
    with slow(page, 0):
        approve(page)
        expect(page.locator("#banner")).to_contain_text("No reply came to your answer")
        assert page.locator("#card").evaluate("card => card.inert")
    page.get_by_role("button", name="Read it again").click()
    expect(page.locator("#banner")).to_be_hidden()
    approve(page)
    expect(page.locator(".notice")).to_have_text(f"Released: {held['target']}.")


def held_back(page: Page, about: str, held: Any, seconds: float) -> None:
    page.goto(f"/review/{held['review_id']}?q={about}")
    page.locator(".desk").evaluate("(desk, seconds) => (desk.dataset.holdBack = seconds)", seconds)


def test_an_answer_counts_after_the_hold_back_and_the_next_item_is_open_at_once(site: Site, people: People) -> None:
    about, held = three(site)
    page = people.page("reviewer")
    held_back(page, about, held[0], 2)
    approve(page)
    expect(page.locator("#held-back")).to_contain_text(
        re.compile(f"Approving: {held[0]['target']}. It counts in [12] s")
    )
    expect(page.locator("#card .target")).to_contain_text(held[1]["target"])
    assert state_of(site, held[0]) == "review-required"
    expect(page.locator("#told")).to_have_text(f"Released: {held[0]['target']}.")
    expect(page.locator("#held-back")).to_be_hidden()
    assert [state_of(site, one) for one in held] == ["approved-for-execution", "review-required", "review-required"]


def test_an_answer_is_taken_back_before_it_counts(site: Site, people: People) -> None:
    about, held = three(site)
    page = people.page("reviewer")
    held_back(page, about, held[0], 2)
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.locator("#card .target")).to_contain_text(held[1]["target"])
    page.keyboard.press("u")
    expect(page.locator("#told")).to_have_text(f"Taken back: {held[0]['target']}. Nothing was decided.")
    expect(page.locator("#card .target")).to_contain_text(held[0]["target"])
    page.wait_for_timeout(2500)
    page.keyboard.press("u")
    expect(page.locator("#told")).to_contain_text("There is no answer to take back")
    assert [state_of(site, one) for one in held] == ["review-required"] * 3


def test_an_answer_that_meets_a_decision_of_somebody_else_says_that_it_is_not_recorded(
    site: Site, people: People
) -> None:
    about, held = three(site)
    page, other = people.page("reviewer"), people.page("reviewer2")
    held_back(page, about, held[0], 3)
    approve(page)
    card_of(other, held[0])
    approve(other)
    expect(other.locator(".notice")).to_contain_text("Released")
    expect(page.locator("#banner")).to_contain_text(f"{held[0]['target']}: not recorded.")
    expect(page.get_by_role("button", name="Open the item")).to_be_visible()
