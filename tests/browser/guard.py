"""What no page may do, whatever a test is about: break the content policy, print an error, or call another host."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

REPORT = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error("content policy:", event.violatedDirective, event.blockedURI, event.sourceFile, event.lineNumber);
});
"""


@dataclass
class Guard:
    """Listens to every page of a context. `allow` names what a test provokes on purpose, as part of the message."""

    base_url: str
    found: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.add_init_script(REPORT)
        context.on("page", self._page)
        context.on("request", self._request)
        context.on("response", self._response)

    def allow(self, *parts: str) -> None:
        self.allowed.extend(parts)

    def check(self) -> None:
        bad = [one for one in self.found if not any(part in one for part in self.allowed)]
        assert not bad, "\n".join(bad)

    def _page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"console {message.type}: {message.text} at {message.location.get('url')}")

    def _request(self, request: Request) -> None:
        address: Any = urlsplit(request.url)
        if address.scheme in {"http", "https", "ws", "wss"} and not request.url.startswith(self.base_url + "/"):
            self.found.append(f"request to another host: {address.scheme}://{address.netloc}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.found.append(f"server error {response.status}: {response.url}")
