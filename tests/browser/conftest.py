"""One stack and one Chromium for all browser tests, gone before other tests begin; every page under guard."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.site import People, Site
from tests.stack.homes import seasoned_stack
from tests.stack.support import RunningStack

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "Chromium is not installed: the browser tests cannot run (Debian's package `chromium`, or CHROMIUM=<path>)."


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts servers and a browser, so nobody has to remember the marks."""
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.stack)
            item.add_marker(pytest.mark.timeout(120, func_only=True))  # the stack has its own limit


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def site(browser: Browser, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`make run` as a user has it, with the demo, in a folder of its own, and its mails as files. Started once;
    BROWSER_HOME, BROWSER_PORT and BROWSER_MAIL name one that runs already, for whoever works on the pages."""
    if "BROWSER_HOME" in os.environ:
        mails = {"HOLDPOINT_MAIL_FOLDER": os.environ.get("BROWSER_MAIL", "")}
        home, port = Path(os.environ["BROWSER_HOME"]), int(os.environ["BROWSER_PORT"])
        yield Site(RunningStack(home=home, port=port, variables=mails))
        return
    seasoned: Path = request.getfixturevalue("seasoned_home")  # only now: making it takes a while
    variables = {
        "HOLDPOINT_MAIL_FOLDER": str(tmp_path_factory.mktemp("mail")),
        # Answers count at once, as most tests expect; what is held back is in test_review_safety.
        "HOLDPOINT_REVIEW_HOLD_BACK_SECONDS": "0",
        # The identity providers of the tests are on loopback.
        "HOLDPOINT_IDENTITY_ALLOW_PRIVATE": "127.0.0.1",
    }
    with seasoned_stack(seasoned, **variables) as stack:
        yield Site(stack)


@pytest.fixture(scope="package")
def _people(site: Site, browser: Browser) -> People:
    return People(site, browser)


@pytest.fixture
def people(_people: People) -> Iterator[People]:
    """`people.page("reviewer")` is a page of that person; `people.nobody()` one of a stranger."""
    yield _people
    _people.leave()


@pytest.fixture
def page(people: People) -> Page:
    return people.nobody()
