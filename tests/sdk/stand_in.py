"""A stand-in for the server in the fault tests of the client: it answers from a script and keeps what it was sent."""

import json
from collections.abc import Callable
from typing import Any

import httpx

ID = "0199a1c2-0000-7000-8000-000000000001"
Say = Callable[[httpx.Request], httpx.Response] | httpx.Response | Exception


def asked(state: str = "approved-for-execution", status: int = 201, **headers: str) -> httpx.Response:
    review = None
    if state == "review-required":
        review = {"id": ID, "tier": "clinician", "approvals_required": 1, "expires_at": "2026-11-17T00:00:00+00:00"}
    return httpx.Response(
        status, json={"id": ID, "state": state, "reason_code": None, "review": review}, headers=headers
    )


def problem(status: int, code: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    document = {"type": f"https://holdpoint.example/problems/{code}", "title": code, "detail": code, "status": status}
    kind = {"Content-Type": "application/problem+json"}
    return httpx.Response(status, content=json.dumps(document | more), headers=kind | (headers or {}))


def leased(**more: Any) -> httpx.Response:
    attempt = {"id": ID, "state": "approved-for-execution", "operation": "x", "target_ref": "t"}
    document = {"lease_token": "token", "lease_expires_at": "2026-11-16T12:01:00+00:00", "effect_key": "effect-1"}
    date = {"Date": "Mon, 16 Nov 2026 12:00:00 GMT"}
    return httpx.Response(200, json=document | {"attempt": attempt} | more, headers=date)


def reported(state: str = "completed") -> httpx.Response:
    return httpx.Response(
        200, json={"id": ID, "state": state, "reason_code": None, "tries": 1, "next_eligible_at": None}
    )


class Server:
    """Answers by the end of the path; a list is used up one by one, its last stays."""

    def __init__(self, **answers: Say | list[Say]) -> None:
        self.answers: dict[str, list[Say]] = {
            name: list(said) if isinstance(said, list) else [said] for name, said in answers.items()
        }
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        name = request.url.path.rpartition("/")[2]
        said = self.answers.get(name) or self.answers["read"]
        one = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(one, Exception):
            raise one
        found = one(request) if callable(one) else one
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        return self(request)

    def sent(self, name: str) -> list[httpx.Request]:
        return [request for request in self.requests if request.url.path.endswith(f"/{name}")]

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self)
