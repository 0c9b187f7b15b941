"""Notifications in a real browser: an operator connects and routes by form, a reviewer chooses and gets a code."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import DESKTOP, PHONE, People, axe


def shot(page: Page, name: str) -> None:
    """For whoever works on the pages: BROWSER_SHOTS names a folder."""
    if folder := os.environ.get("BROWSER_SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_from_a_connected_workspace_to_a_code_on_a_phone(people: People) -> None:
    page = people.page("operator")
    page.goto("/admin/attempts/chatworkspace/add/")
    page.locator("[name=name]").fill("Demo workspace")
    page.get_by_label("Workspace id").fill("T0BROWSER1")
    page.get_by_label("Bot token").fill("xoxb-browser-0001")
    page.get_by_label("Signing secret").fill("browser-secret-0001")
    shot(page, "workspace-add")
    page.get_by_role("button", name="Connect a Slack workspace").click()
    expect(page.get_by_text("/integrations/slack/")).to_be_visible()
    assert "browser-secret" not in page.content()
    shot(page, "workspace")
    page.goto("/admin/attempts/notificationroute/add/")
    page.locator("[name=channel]").select_option("email")
    page.get_by_label("Minutes between digests").fill("60")
    shot(page, "route-add")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("announces reviews that open from now on")).to_be_visible()
    shot(page, "route")
    page.goto("/admin/attempts/notification/")
    shot(page, "log")


@pytest.mark.parametrize(("size", "colours"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_a_persons_own_page_reads_and_works_without_a_mouse(people: People, size: dict[str, int], colours: str) -> None:
    page = people.page("reviewer", viewport=size, color_scheme=colours, reduced_motion="reduce")
    page.goto("/review/notifications")
    assert axe(page) == []
    page.get_by_label("One mail for all").check()
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_label("One mail for all")).to_be_checked()
    code = page.get_by_role("button", name="Get a code")
    if code.count():
        code.first.press("Enter")
        expect(page.get_by_text("/holdpoint link")).to_be_visible()
    shot(page, f"own-{colours}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
