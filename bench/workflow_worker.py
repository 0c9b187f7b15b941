"""One process that does workflow runs through `event_receive`, and measures times or counts statements per event.

Reads its task as JSON from the first line of stdin, prints "ready", and starts after the second line.
"""

import cProfile
import io
import json
import os
import pstats
import sys
import time
from typing import Any
from uuid import UUID, uuid4

import django

from bench.workflow_flows import PARTS, STEPS, events

REGION = "US"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.settings")
    django.setup()
    task = json.loads(sys.stdin.readline())
    driver = Driver(task)
    for _ in range(task["warm_up"]):
        driver.run()
    # PostgreSQL reports a backend's transactions once a second. The wait keeps those of the warm-up out of the
    # measurement.
    time.sleep(1.1)
    driver.run()
    print("ready", flush=True)
    sys.stdin.readline()
    if task.get("profile"):
        print(json.dumps({"profile": profiled(driver)}), flush=True)
    else:
        print(json.dumps(driver.counted() if task["count"] else driver.timed()), flush=True)


def profiled(driver: "Driver") -> str:
    """A profile of the processor time, with BENCH_PROFILE=1."""
    profile, text = cProfile.Profile(time.process_time), io.StringIO()
    profile.runcall(driver.timed)
    pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(90)
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(40)
    return text.getvalue()


class Driver:
    def __init__(self, task: dict[str, Any]) -> None:
        from reasoncodes.base.actors import Actor, ActorKind

        self.task = task
        organizations, scopes = frozenset({UUID(task["organization"])}), frozenset({"orchestrator:write"})
        self.actor = Actor(ActorKind.SERVICE, UUID(task["account"]), organizations, scopes)

    def envelope(self, number: int, case: str, correlation: str) -> dict[str, Any]:
        name, payload = events(self.task["flow"])[number]
        return {
            "event_id": str(uuid4()),
            "event_type": name,
            "schema_version": "v1",
            "occurred_at": "2026-11-16T12:00:00Z",
            "correlation_id": correlation,
            "case_id": case,
            "org_id": self.task["organization"],
            "product_id": self.task["product"],
            "payload": payload,
        }

    def run(self, around: Any = None) -> None:
        """Sends the four events of one run. `around(part, call)` makes the call and may measure it."""
        from workflows.engine.state import correlation

        case, instance, secret = str(uuid4()), None, ""
        for number, part in enumerate(PARTS):
            step = correlation(instance, STEPS[number - 1], 1, secret=secret) if instance else uuid4()
            envelope = self.envelope(number, case, str(step))
            received = around(part, lambda sent=envelope: self.send(sent)) if around else self.send(envelope)
            instance, secret = received.event.instance_id, received.event.instance.secret
            if received.event.outcome != "advanced":
                raise RuntimeError(f"{part}: {received.event.outcome}")
        if received.event.instance.state != "completed":
            raise RuntimeError(f"ended as {received.event.instance.state}")

    def send(self, envelope: dict[str, Any]) -> Any:
        from django.utils import timezone

        from reasoncodes.base.tenancy import tenant_scope
        from workflows.events.services.receive import event_receive

        with tenant_scope({UUID(envelope["org_id"])}):
            return event_receive(envelope=envelope, actor=self.actor, at=timezone.now(), region=REGION)

    def timed(self) -> dict[str, Any]:
        times: dict[str, list[float]] = {part: [] for part in PARTS}

        def around(part: str, call: Any) -> Any:
            began = time.perf_counter()
            answer = call()
            times[part].append(time.perf_counter() - began)
            return answer

        busy = time.process_time()
        for _ in range(self.task["runs"]):
            self.run(around)
        return {"times": times, "cpu_s": time.process_time() - busy}

    def counted(self) -> dict[str, Any]:
        """Statements, commits and WAL bytes of each event. BEGIN and COMMIT are not among the statements."""
        import psycopg
        from django.db import connection

        from bench.load import counters

        watch = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        rows: dict[str, list[tuple[int, int, int]]] = {part: [] for part in PARTS}
        commits = Tally(connection._commit)
        connection._commit = commits
        texts: dict[str, list[str]] = {}

        def around(part: str, call: Any) -> Any:
            sent: list[str] = []

            def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
                sent.append(str(sql)[:110])
                return execute(sql, params, many, context)

            committed, before = commits.count, counters(watch)
            with connection.execute_wrapper(note):
                answer = call()
            rows[part].append((len(sent), commits.count - committed, counters(watch)[1] - before[1]))
            texts[part] = sent
            return answer

        for _ in range(self.task["runs"]):
            self.run(around)
        return {"counts": rows, "texts": texts}


class Tally:
    """Counts the calls of a function."""

    def __init__(self, function: Any) -> None:
        self.function, self.count = function, 0

    def __call__(self) -> Any:
        self.count += 1
        return self.function()


if __name__ == "__main__":
    main()
