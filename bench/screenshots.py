"""`make screenshots`: takes the pictures of docs/operators.md and docs/reviewers.md from a demo stack in Chromium."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM, MISSING
from tests.browser.site import People, Site
from tests.stack.homes import home_folder
from tests.stack.support import RunningStack

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
DESK, PHONE = {"width": 1290, "height": 720}, {"width": 390, "height": 780}
LOW = {"width": 1290, "height": 520}  # a page full of table text makes a large file
# Bytes. A larger picture is reported: every clone of the repository carries it.
LARGEST = 150_000


@dataclass(frozen=True, slots=True)
class Shot:
    name: str
    who: str
    path: str
    size: dict[str, int] = field(default_factory=lambda: DESK)
    scheme: str = "light"
    then: Callable[[Page], Any] = lambda page: None


def shots(made: dict[str, str]) -> list[Shot]:
    return [
        Shot("overview", "operator", "/admin/"),
        Shot("overview-phone", "operator", "/admin/", PHONE, "dark"),
        Shot("getting-started", "admin", "/admin/start/"),
        Shot("attempts", "operator", "/admin/attempts/attempt/?state=review-required", LOW),
        Shot("attempt", "operator", f"/admin/attempts/attempt/{made['attempt']}/change/", then=to_timeline),
        Shot("run", "operator", f"/admin/workflows/workflowinstance/{made['run']}/change/", then=to_picture),
        Shot("readiness-board", "owner_privacy", f"/admin/governance/contract/{made['closed']}/readiness/", LOW),
        Shot("shutdown", "operator", made["shutdown"]),
        Shot("review-queue", "reviewer", "/review/"),
        Shot("review-card", "reviewer", f"/review/{made['review']}"),
        Shot("review-queue-phone", "reviewer", "/review/", PHONE, "dark"),
        Shot("review-card-phone", "reviewer", f"/review/{made['review']}", PHONE),
    ]


def to_timeline(page: Page) -> None:
    page.evaluate("document.querySelector('#obstacles-title').scrollIntoView()")


def to_picture(page: Page) -> None:
    page.locator("#picture-title").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#picture-title').scrollIntoView()")


def set_the_scene(site: Site) -> dict[str, str]:
    """Creates a few attempts of every kind, a run that waits, and the address of a shutdown's preview."""
    for number in range(8):
        for contract in ("allow", "hold", "deny"):
            if (number + len(contract)) % 3:
                changed = {"target_ref": f"case-{2000 + number}", "risk_tier": ("low", "medium", "high")[number % 3]}
                site.ask(contract, action=changed, patient_context_ref=f"ctx-{number:04}")
    held = site.ask("hold", action={"target_ref": "case-3007", "risk_tier": "medium"})
    named = site.demo["definitions"]["ai_plus_clinician_plus_sa_qa_sample"]["id"]
    product = site.call("GET", f"/workflow-definitions/{named}", "workflows").json()["product_id"]
    ids = {name: str(uuid4()) for name in ("event_id", "correlation_id", "case_id")}
    site.call("POST", "/events", "workflows", site.demo["event_example"] | ids | {"product_id": product})
    time.sleep(4)
    (run,) = site.call("GET", f"/workflow-instances?case_id={ids['case_id']}", "workflows").json()["results"]
    organization = site.demo["organization"]["id"]
    return {
        "attempt": held["id"],
        "review": held["review"]["id"],
        "run": run["id"],
        "closed": site.demo["contracts"]["closed"]["id"],
        "shutdown": f"/admin/governance/shutdown/add/?scope=contract&organization={organization}&contract=demo-hold",
    }


def main() -> int:
    if CHROMIUM is None:
        sys.exit(MISSING)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with home_folder() as folder, sync_playwright() as playwright:
        stack = RunningStack(home=folder)
        stack.start()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            site = Site(stack)
            people = People(site, browser)
            for shot in shots(set_the_scene(site)):
                page = people.page(shot.who, viewport=shot.size, color_scheme=shot.scheme)
                page.goto(shot.path)
                page.wait_for_load_state("networkidle")
                shot.then(page)
                file = FOLDER / f"{shot.name}.png"
                page.screenshot(path=file, scale="css", animations="disabled", caret="hide")
                size = file.stat().st_size
                print(f"{file.name}: {size // 1000} kB" + (", too large" if size > LARGEST else ""))
        finally:
            browser.close()
            stack.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
