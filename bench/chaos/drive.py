"""The clients of a chaos run: each does what the plan says, one after another, and writes down what it was told."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx

from bench.chaos.history import History
from bench.chaos.plan import Operation, operations

SECONDS = 30


class ChaosClient(threading.Thread):
    """`held` and `approved` are what earlier operations of this client left to do."""

    def __init__(self, *, base_url: str, demo: dict[str, Any], history: History, seed: int, client: int) -> None:
        super().__init__(name=f"client-{client}", daemon=True)
        self.base_url, self.demo, self.history, self.seed, self.client = base_url, demo, history, seed, client
        self.over = threading.Event()
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.held: list[dict[str, Any]] = []
        self.approved: list[str] = []
        self.http = httpx.Client(base_url=base_url, timeout=SECONDS)
        self.reviewer: httpx.Client | None = None

    def run(self) -> None:
        acts: dict[str, Callable[[Operation], None]] = {
            "repeat": self.repeat,
            "review": self.review,
            "execute": self.execute,
            "event": self.event,
            "read": self.read,
        }
        for operation in operations(self.seed, self.client):
            if self.over.wait(operation.pause):
                return
            if operation.name.startswith("intake."):
                self.intake(operation)
            else:
                acts[operation.name](operation)

    def close(self) -> None:
        for one in (self.http, self.reviewer):
            if one is not None:
                one.close()

    def id_of(self, operation: Operation) -> str:
        return str(uuid5(NAMESPACE_URL, f"holdpoint-chaos/{self.seed}/{self.client}/{operation.number}"))

    def _do(self, name: str, call: Callable[[], httpx.Response], **note: Any) -> httpx.Response | None:
        """One operation. Without an answer its outcome is unknown, which the checker allows for."""
        began = self.history.now()
        try:
            answer: httpx.Response | None = call()
        except httpx.HTTPError:
            answer = None
        seen: dict[str, Any] = {"status": answer.status_code if answer is not None else 0}
        if answer is not None and "json" in answer.headers.get("Content-Type", ""):
            body = answer.json()
            if isinstance(body, dict):
                seen |= {name: body[name] for name in ("id", "state", "reason_code", "type") if name in body}
            seen["replayed"] = answer.headers.get("Idempotent-Replayed", "") == "true"
        self.history.write("op", name=name, client=self.client, began=began, ended=self.history.now(), **note, **seen)
        return answer

    def _call(self, method: str, path: str, key: str, body: Any = None, **headers: str) -> httpx.Response:
        headers["Authorization"] = f"Bearer {self.demo['keys'][key]}"
        return self.http.request(method, f"/api/v1{path}", headers=headers, json=body)

    def intake(self, operation: Operation) -> None:
        contract = operation.name.partition(".")[2]
        key = self.id_of(operation)
        body = self.demo["attempt_example"] | {"patient_context_ref": f"ctx-{key[:13]}"}
        self.asked.append((contract, key, body))
        self._ask(contract, key, body)

    def _ask(self, contract: str, key: str, body: dict[str, Any]) -> None:
        route = self.demo["contracts"][contract]
        path = f"/execution/{route['slug']}/{route['version']}/attempts"
        call = lambda: self._call("POST", path, "caller", body, **{"Idempotency-Key": key})  # noqa: E731
        answer = self._do("intake", call, contract=contract, key=key)
        if answer is None or answer.status_code not in (201, 202):
            return
        made = answer.json()
        if made.get("state") == "review-required":
            self.held.append(made)
        elif contract in ("allow", "timeline"):
            self.approved.append(made["id"])

    def repeat(self, operation: Operation) -> None:
        """An earlier request once more, as a caller does that got no answer."""
        if self.asked:
            self._ask(*self.asked[int(operation.choice * len(self.asked))])

    def review(self, operation: Operation) -> None:
        if not self.held or (reviewer := self._signed_in()) is None:
            return
        held = self.held.pop(int(operation.choice * len(self.held)))
        verb = "approve" if operation.choice < 0.7 else "reject"
        body = {"action_digest": held["action_digest"]}
        if verb == "reject":
            body["reason_code"] = "reviewer_wrong_target"
        path = f"/api/v1/reviews/{held['review']['id']}/{verb}"
        answer = self._do(f"review.{verb}", lambda: reviewer.post(path, json=body), attempt=held["id"])
        if answer is not None and answer.status_code == 200 and verb == "approve":
            self.approved.append(held["id"])
        elif answer is None or answer.status_code >= 500:
            self.held.append(held)
            reviewer.close()
            self.reviewer = None

    def _signed_in(self) -> httpx.Client | None:
        if self.reviewer is None:
            client = httpx.Client(base_url=self.base_url, follow_redirects=True, timeout=SECONDS)
            try:
                client.get("/admin/login/")
                token = {"csrfmiddlewaretoken": client.cookies["csrftoken"]}
                person = self.demo["users"]["reviewer" if self.client % 2 else "reviewer2"]
                client.headers["Referer"] = f"{self.base_url}/admin/login/"
                client.post("/admin/login/", data=person | token).raise_for_status()
                client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
            except (httpx.HTTPError, KeyError):
                client.close()
                return None
            self.reviewer = client
        return self.reviewer

    def execute(self, operation: Operation) -> None:
        """Leases an approved attempt, and reports it as done."""
        if not self.approved:
            return
        attempt = self.approved.pop(int(operation.choice * len(self.approved)))
        path = f"/attempts/{attempt}"
        leased = self._do("lease", lambda: self._call("POST", f"{path}/lease", "executor", {}), attempt=attempt)
        if leased is None or leased.status_code != 200:
            return
        report = {"lease_token": leased.json()["lease_token"], "response_metadata": {"status": "ok"}}
        self._do("complete", lambda: self._call("POST", f"{path}/complete", "executor", report), attempt=attempt)

    def event(self, operation: Operation) -> None:
        known = self.id_of(operation)
        envelope = self.demo["event_example"] | {"event_id": known, "case_id": str(uuid5(NAMESPACE_URL, known))}
        self._do("event", lambda: self._call("POST", "/events", "workflows", envelope), event=known)

    def read(self, operation: Operation) -> None:
        self._do("read", lambda: self._call("GET", "/attempts?page_size=5", "caller"))
