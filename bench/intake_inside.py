"""Counts what cannot be seen over HTTP: the statements of one request of each kind, and the commits of an active
attempt from intake to completion with an adapter that does nothing. bench.intake runs it as a process of its own."""

import json
import sys
from typing import Any
from uuid import UUID, uuid4

import django

django.setup()

from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from attempts.execution.adapters.base import (  # noqa: E402
    ADAPTERS,
    AdapterCall,
    Outcome,
    success,
)
from attempts.execution.services.dispatch import attempt_dispatch  # noqa: E402

ACTIVE = 20


class NoOp:
    name = "http"
    effect = "idempotent"
    retryable: tuple[str, ...] = ()

    def call(self, call: AdapterCall) -> Outcome:
        return success()


class Caller:
    def __init__(self, demo: dict[str, Any]) -> None:
        self.client = Client(headers={"Authorization": f"Bearer {demo['keys']['caller']}", "Host": "127.0.0.1"})
        self.body = demo["attempt_example"]

    def post(self, slug: str, key: str, mode: str = "shadow", **action: Any) -> Any:
        body = self.body | {"patient_context_ref": f"ctx-{key}", "runtime_mode": mode}
        body["action"] = {**body["action"], **action}
        return self.client.post(
            f"/api/v1/execution/{slug}/1/attempts",
            json.dumps(body),
            content_type="application/json",
            headers={"Idempotency-Key": key},
        )


def statements(caller: Caller) -> dict[str, int]:
    """The statements of the second request of each kind: the first one in a process also reads the contract."""
    key, counted = str(uuid4()), {}
    cases = {
        "allow": ("demo-allow", lambda: str(uuid4()), "shadow"),
        "allow_with_places": ("demo-allow", lambda: str(uuid4()), "client_driven"),
        "hold": ("demo-hold", lambda: str(uuid4()), "shadow"),
        "replay": ("demo-allow", lambda: key, "shadow"),
        "closed": ("demo-closed", lambda: str(uuid4()), "shadow"),
    }
    caller.post("demo-allow", key)
    for name, (slug, make_key, mode) in cases.items():
        caller.post(slug, make_key(), mode)
        with CaptureQueriesContext(connection) as captured:
            answer = caller.post(slug, make_key(), mode)
        if answer.status_code not in {201, 202, 403}:
            raise RuntimeError(f"{name}: {answer.status_code} {answer.content.decode()}")
        counted[name] = len(captured)
    return counted


def commits_to_completed(caller: Caller) -> float:
    """Transactions per attempt that wrote something, without the one of lease and intent."""
    ADAPTERS["http"] = NoOp()
    caller.post("demo-idempotent-http", str(uuid4()), "active", connector="http")
    before = transactions()
    for _ in range(ACTIVE):
        answer = caller.post("demo-idempotent-http", str(uuid4()), "active", connector="http")
        state = attempt_dispatch(attempt_id=UUID(answer.json()["id"]), now=timezone.now)
        if state != "completed":
            raise RuntimeError(f"the attempt is {state}: {answer.content.decode()}")
    return (transactions() - before) / ACTIVE - 1


def transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    caller = Caller(json.loads(sys.argv[1]))
    found = {
        "statements": statements(caller),
        "commits_to_completed_besides_the_intent": round(commits_to_completed(caller), 2),
    }
    print(json.dumps(found))
