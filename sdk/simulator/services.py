"""The registered modules that the simulator plays: those that read their requests from the streams. It asks Holdpoint
for them, again and again, because people register more while it runs."""

from typing import Any, Protocol

import httpx
import structlog

from workflows.kinds.call_events import REQUESTED, call_event_name

log = structlog.get_logger("holdpoint.modules")
ACTIVE = {"status": "active", "transport": "stream", "page_size": "100"}
Returns = dict[str, dict[str, Any]]


class Registry(Protocol):
    def returns(self) -> Returns | None:
        """What each operation returns, by the event type of its request; None if nobody answers now."""
        ...

    def close(self) -> None: ...


class Services:
    def __init__(self, *, url: str, key: str, timeout: float = 10.0) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)

    def returns(self) -> Returns | None:
        found: Returns = {}
        where: str | None = "/api/v1/modules"
        asked: dict[str, str] | None = ACTIVE
        while where:
            try:
                answer = self.client.get(where, params=asked)
                answer.raise_for_status()
                page = answer.json()
            except (httpx.HTTPError, ValueError) as error:
                log.info("modules_unknown", error=type(error).__name__)
                return None
            for module in page["results"]:
                for name, operation in module["operations"].items():
                    found[call_event_name(module["slug"], name, REQUESTED)] = operation["returns"]
            where, asked = page["next"], None
        return found

    def close(self) -> None:
        self.client.close()


class NoServices:
    """Where no registered module is played."""

    def returns(self) -> Returns | None:
        return {}

    def close(self) -> None:
        return
