"""WCAG 2.2 AA by axe-core: every review and sign-in page, light and dark, on a desk and on a phone."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.reviewing import hold
from tests.browser.site import DESKTOP, PHONE, People, Site, axe

pytestmark = [pytest.mark.browser, pytest.mark.stack]
LOOKS = [("light", DESKTOP), ("dark", PHONE)]  # the colours do not depend on the size: two runs see both of each


@pytest.fixture(scope="module")
def items(site: Site) -> dict[str, Any]:
    return {"low": hold(site), "high": hold(site, risk="high"), "two": hold(site, contract="two_person", risk="medium")}


def pages(items: dict[str, Any]) -> list[str]:
    chosen = f"id={items['low']['review_id']}&id={items['high']['review_id']}"
    return [
        "/review/",
        "/review/?view=mine",
        "/review/?view=history&risk=low",
        f"/review/{items['low']['review_id']}",
        f"/review/{items['high']['review_id']}",
        f"/review/{items['two']['review_id']}?view=all",
        f"/review/bulk?verdict=reject&id={items['low']['review_id']}",
        f"/review/bulk?verdict=approve&{chosen}",
        "/accounts/sessions/",
        "/accounts/2fa/",
        "/accounts/password/change/",
        "/accounts/reauthenticate/",
    ]


def found_on(page: Page, paths: list[str]) -> list[str]:
    wrong = []
    for path in paths:
        page.goto(path)
        wrong += [f"{path}: {one}" for one in axe(page)]
    return wrong


@pytest.mark.parametrize(("colours", "size"), LOOKS)
def test_axe_finds_nothing_on_the_pages_of_a_reviewer(
    people: People, items: dict[str, Any], colours: str, size: dict[str, int]
) -> None:
    page = people.page("reviewer", color_scheme=colours, viewport=size, reduced_motion="reduce")
    assert found_on(page, pages(items)) == []
    page.goto(f"/review/{items['low']['review_id']}")
    for choice in page.locator("#answers details > summary").all():
        choice.click()
    assert axe(page) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_on_the_sign_in(people: People, colours: str) -> None:
    page = people.nobody(color_scheme=colours, viewport=PHONE)
    assert found_on(page, ["/accounts/login/", "/"]) == []


def test_the_pages_stand_in_a_right_to_left_language(people: People, items: dict[str, Any]) -> None:
    page = people.page("reviewer", viewport=PHONE)
    page.goto(f"/review/{items['low']['review_id']}")
    page.evaluate("document.documentElement.dir = 'rtl'")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert axe(page) == []
