"""One running stack with its demo, for all browser tests: who asks, who signs in, and a shell for what has no door."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.guard import Guard
from tests.stack.support import RunningStack

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
SLOWEST_MS = 10_000
SIGN_IN = re.compile(r"^(Sign|Log) in$", re.IGNORECASE)


@dataclass
class Site:
    """The stack that the browser looks at, and what its demo made."""

    stack: RunningStack

    @property
    def demo(self) -> dict[str, Any]:
        return self.stack.demo

    @property
    def base_url(self) -> str:
        return self.stack.base_url

    def shell(self, code: str) -> str:
        """For set-up that no door offers, inside `every_tenant()`: prints are returned."""
        head = "from reasoncodes.base.tenancy import every_tenant\nwith every_tenant():\n"
        body = "".join(f"    {line}\n" for line in code.strip().splitlines())
        return self.stack.manage("shell", "-c", head + body).strip()

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """As the tables' owner: for set-up that takes a second by `shell`."""
        with psycopg.connect(self.stack.runtime()["database_owner_url"]) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[arg-type]
            return list(cursor.fetchall()) if cursor.description else []

    def call(self, method: str, path: str, key: str, body: Any = None, **headers: str) -> httpx.Response:
        """The API with one of the demo's keys."""
        headers["Authorization"] = f"Bearer {self.demo['keys'][key]}"
        return httpx.request(method, f"{self.base_url}/api/v1{path}", headers=headers, json=body, timeout=40)

    def ask(self, contract: str, *, key: str = "caller", action: dict[str, Any] | None = None, **changes: Any) -> Any:
        """One attempt under a demo contract; `action` changes single parts of the example's action."""
        route, body = self.demo["contracts"][contract], self.demo["attempt_example"] | changes
        body["action"] = body["action"] | (action or {})
        path = f"/execution/{route['slug']}/{route['version']}/attempts"
        answer = self.call("POST", path, key, body, **{"Idempotency-Key": f"browser-{uuid4()}"})
        return answer.json()


@dataclass
class People:
    """Pages of signed-in people. A person signs in once per run; later contexts take over the cookies."""

    site: Site
    browser: Browser
    cookies: dict[str, Any] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def context(self, **options: Any) -> BrowserContext:
        """A fresh browser profile under guard; see `Browser.new_context` for the options (viewport, color_scheme …)."""
        settings = {"base_url": self.site.base_url, "viewport": DESKTOP, "timezone_id": "Europe/Berlin"} | options
        context = self.browser.new_context(**settings)
        context.set_default_timeout(SLOWEST_MS)
        guard = Guard(settings["base_url"])
        guard.watch(context)
        self.guards.append(guard)
        self.contexts.append(context)
        return context

    def nobody(self, **options: Any) -> Page:
        return self.context(**options).new_page()

    def page(self, name: str, **options: Any) -> Page:
        """A page of the demo's user `name`, signed in, still blank."""
        if name not in self.cookies:
            visitor = self.context()
            page = visitor.new_page()
            sign_in(page, **self.site.demo["users"][name])
            self.cookies[name] = visitor.storage_state()
        return self.context(storage_state=self.cookies[name], **options).new_page()

    def allow(self, *parts: str) -> None:
        """What this test provokes on purpose, as part of the message (`"status of 429"`)."""
        for guard in self.guards:
            guard.allow(*parts)

    def leave(self) -> None:
        """After each test: everything is closed, then every guard has its say."""
        for context in self.contexts:
            context.close()
        guards, self.guards, self.contexts = self.guards, [], []
        for guard in guards:
            guard.check()


def sign_in(page: Page, *, username: str, password: str, to: str = "/review/") -> None:
    """Through the one form that /admin/ and /review/ share."""
    page.goto(f"/admin/login/?next={to}")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password", exact=False).first.fill(password)
    page.get_by_role("button", name=SIGN_IN).click()
    page.wait_for_url(lambda url: "/login/" not in url)


AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe(page: Page) -> list[str]:
    """What axe-core finds on the page as it is now. Injected through the debugger, so the content policy stays on."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    return [
        f"{one['id']} ({one['impact']}): {one['help']} — {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        for node in one["nodes"]
    ]
