"""Sends answers to Holdpoint's API, and says whether one was accepted, should be sent again, or is refused for good."""

from dataclasses import dataclass
from typing import Any

import httpx

# Refusals that a repetition cannot change. 401 and 403 are not among them: somebody may correct the key.
FINAL = frozenset({400, 404, 405, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class SendResult:
    taken: bool
    final: bool
    status: int = 0  # 0: nobody answered
    wait: float | None = None  # as the server asked for


class Web:
    def __init__(self, *, url: str, key: str, timeout: float = 10.0) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        # `trust_env=False`: a proxy from the environment would see the key.
        self.client = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)

    def send(self, envelope: dict[str, Any]) -> SendResult:
        try:
            answer = self.client.post("/api/v1/events", json=envelope)
        except httpx.HTTPError:
            return SendResult(taken=False, final=False)
        taken = answer.is_success
        return SendResult(taken, taken or answer.status_code in FINAL, answer.status_code, retry_after_seconds(answer))

    def close(self) -> None:
        self.client.close()


def retry_after_seconds(answer: httpx.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
