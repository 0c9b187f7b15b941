"""From nothing to a held action: an administrator follows the steps, an owner approves, the printed line is run."""

import json
import os
import subprocess
from uuid import uuid4

from playwright.sync_api import Page, expect

from tests.browser.site import People, Site, sign_in

PASSWORD = "correct horse battery staple"


def step(page: Page, name: str, button: str) -> None:
    page.goto("/admin/start/")
    line = page.locator(f'[data-step="{name}"]')
    expect(line).to_have_attribute("aria-current", "step")
    line.get_by_role("link", name=button).click()


def test_the_first_run_ends_with_a_line_that_works(site: Site, people: People) -> None:
    word = uuid4().hex[:6]
    page = people.nobody()
    sign_in(page, **site.demo["users"]["admin"], to="/admin/start/")
    page.get_by_role("link", name="Another organization").click()
    page.get_by_label("Slug").fill(f"fresh-{word}")
    page.get_by_label("Name").fill(f"Fresh {word}")
    page.locator('input[name="regions"][value="US"]').check()
    page.get_by_role("button", name="Save", exact=True).click()

    step(page, "people", "Add a person")
    page.get_by_label("Username").fill(f"olga-{word}")
    for role in ("owner", "reviewer"):
        page.locator(f'input[name="roles"][value="{role}"]').check()
    page.get_by_role("button", name="Add the person").click()
    invitation = page.locator("#link").text_content() or ""
    step(page, "account", "Add it")
    page.get_by_role("button", name="Add the account").click()
    step(page, "contract", "Choose a starter")
    page.get_by_role("button", name="Draft it").click()
    step(page, "board", "Readiness board")
    board = page.url

    olga = people.nobody()
    olga.goto(invitation)
    olga.get_by_label("Password", exact=True).fill(PASSWORD)
    olga.get_by_label("The same password again").fill(PASSWORD)
    olga.get_by_role("button", name="Choose this password").click()
    olga.goto(board)
    olga.get_by_role("link", name="Decide on my 10 areas together").click()
    olga.get_by_label("Rationale").fill("Read all ten documents")
    olga.get_by_role("button", name="Approve these 10 documents").click()
    expect(olga.get_by_text("Approved: 10 of 10 areas.")).to_be_visible()

    step(page, "open", "Open it")
    page.get_by_role("button", name="Open", exact=True).click()
    step(page, "call", "Make the line")
    page.get_by_role("button", name="Make the line").click()
    line = page.locator("#line").text_content() or ""
    done = subprocess.run(
        ["sh", "-c", line], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert answer["state"] == "review-required", answer
    page.goto("/admin/start/")
    expect(page.locator('[data-step="review"]')).to_contain_text("The action waits there for a reviewer")
    olga.goto("/review/")
    expect(olga.get_by_text("case-0001").first).to_be_visible()
